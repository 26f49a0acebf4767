"""A client without generated code: learns plinth.Generate by reflection and calls it."""

import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

sys.path.insert(0, "infer/serve/testing")
import server_process  # noqa: E402


def main():
    with server_process.serving() as server:
        channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}")
        grpc.channel_ready_future(channel).result(timeout=10)
        database = ProtoReflectionDescriptorDatabase(channel)
        services = set(database.get_services())
        assert "plinth.Generate" in services, services

        pool = descriptor_pool.DescriptorPool(database)
        method = pool.FindServiceByName("plinth.Generate").FindMethodByName("Generate")
        request_class = message_factory.GetMessageClass(method.input_type)
        reply_class = message_factory.GetMessageClass(method.output_type)
        generate = channel.unary_stream(
            "/plinth.Generate/Generate",
            request_serializer=request_class.SerializeToString,
            response_deserializer=reply_class.FromString)

        request = request_class(text="the mason", max_tokens=12, ignore_end=True)
        request.sampling.seed = 3
        replies = list(generate(request, timeout=20))
        assert sum(reply.HasField("token") for reply in replies) == 12
        assert replies[-1].usage.generated_tokens == 12, replies[-1]
        assert "".join(reply.text for reply in replies)
        again = list(generate(request, timeout=20))
        assert again == replies, "equal seeds give equal replies"

        # grpc.health.v1, in wire bytes: field 1 of the reply is 1, SERVING.
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"", timeout=10) == b"\x08\x01"
        assert check(b"\x0a\x0fplinth.Generate", timeout=10) == b"\x08\x01"

        # Cancelling ends the stream at once and the server goes on.
        request.max_tokens = 2000
        call = generate(request, timeout=20)
        next(iter(call))
        call.cancel()
        assert len(list(generate(request_class(text="a", max_tokens=3, ignore_end=True)))) > 0
        channel.close()
        assert server.stop() == 0, "SIGTERM ends with 0"


if __name__ == "__main__":
    main()
