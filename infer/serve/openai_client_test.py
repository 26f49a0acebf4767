"""OpenAI's own Python client against //infer:serve."""

import sys

import openai

sys.path.insert(0, "infer/serve/testing")
import server_process  # noqa: E402


def check_completion(client, model):
    settings = dict(model=model, prompt="the mason sets", max_tokens=30, temperature=0.8, seed=5)
    whole = client.completions.create(**settings, logprobs=2, echo=True)
    choice = whole.choices[0]
    assert choice.text.startswith("the mason sets"), choice.text
    logprobs = choice.logprobs
    counts = {len(logprobs.tokens), len(logprobs.token_logprobs), len(logprobs.top_logprobs),
              len(logprobs.text_offset)}
    assert counts == {whole.usage.total_tokens}, counts
    assert logprobs.token_logprobs[0] is None
    plain = client.completions.create(**settings)
    chunks = list(client.completions.create(**settings, stream=True))
    assert len(chunks) > 3
    assert "".join(c.choices[0].text for c in chunks) == plain.choices[0].text
    assert [c.choices[0].finish_reason for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices[0].finish_reason == plain.choices[0].finish_reason


def check_chat(client, model):
    settings = dict(model=model, messages=[{"role": "user", "content": "who sets the stone?"}],
                    max_tokens=30, seed=6)
    whole = client.chat.completions.create(**settings, logprobs=True, top_logprobs=3)
    entries = whole.choices[0].logprobs.content
    assert len(entries) == whole.usage.completion_tokens
    assert all(len(entry.top_logprobs) == 3 for entry in entries)
    assert entries[0].top_logprobs[0].logprob >= entries[0].logprob
    chunks = list(client.chat.completions.create(
        **settings, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage
    text = "".join(c.choices[0].delta.content or "" for c in chunks[:-1])
    assert text == whole.choices[0].message.content


def check_errors(client, model):
    def refused(kind, **settings):
        try:
            client.completions.create(**{"model": model, "prompt": "x", **settings})
        except kind as error:
            return error
        raise AssertionError(f"{settings} was not refused")

    assert refused(openai.NotFoundError, model="other", stream=True).code == "model_not_found"
    assert refused(openai.BadRequestError, temperature=7).param == "temperature"
    assert "at most" in refused(openai.BadRequestError, prompt="x 7" * 2000, stream=True).message


def main():
    with server_process.serving(model_name="tiny") as server:
        client = openai.OpenAI(base_url=server.url + "v1", api_key="none", max_retries=0,
                               timeout=30)
        model = client.models.list().data[0].id
        assert model == "tiny", model
        assert client.models.retrieve("tiny").owned_by == "plinth"
        check_completion(client, model)
        check_chat(client, model)
        check_errors(client, model)
        client.close()
        assert server.stop() == 0, "SIGTERM ends with 0"


if __name__ == "__main__":
    main()
