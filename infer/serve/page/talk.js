// The conversation: sends a prompt to the OpenAI-compatible API and shows the stream.

const $ = (id) => document.getElementById(id);
const messages = [];   // the chat so far, as the API takes it
let running = null;    // AbortController of the reply in progress

// Yields the JSON object of each server-sent event until [DONE].
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    buffer += value;
    const parts = buffer.split('\n\n');
    buffer = parts.pop();
    for (const part of parts) {
      const data = part.split('\n').filter((l) => l.startsWith('data:')).map((l) => l.slice(5).trim()).join('\n');
      if (data === '[DONE]') return;
      if (data) yield JSON.parse(data);
    }
  }
}

function turn(kind, who) {
  const node = document.createElement('div');
  node.className = `turn ${kind}`;
  node.innerHTML = '<div class="who"><span></span><span class="figures"></span></div><div class="text"></div>';
  node.querySelector('.who span').textContent = who;
  $('log').append(node);
  return {
    text: node.querySelector('.text'),
    figures: node.querySelector('.figures'),
    fail(message) {
      node.classList.add('error');
      const line = Object.assign(document.createElement('div'), {textContent: message});
      line.setAttribute('role', 'alert');
      node.append(line);
    },
  };
}

function sampling() {
  const settings = {
    temperature: Number($('temperature').value),
    top_p: Number($('top_p').value),
    max_tokens: Number($('max_tokens').value),
  };
  if ($('seed').value !== '') settings.seed = Number($('seed').value);
  return settings;
}

function scrollDown() { $('log').scrollTop = $('log').scrollHeight; }

async function send(prompt, model) {
  const chat = document.querySelector('input[name=mode]:checked').value === 'chat';
  const body = {model, stream: true, stream_options: {include_usage: true}, ...sampling()};
  if (chat) {
    messages.push({role: 'user', content: prompt});
    body.messages = messages;
    turn('user', 'you').text.textContent = prompt;
  } else {
    body.prompt = prompt;
  }
  const reply = turn('assistant', model);
  if (!chat) {
    const part = document.createElement('span');
    part.className = 'prompt-part';
    part.textContent = prompt;
    reply.text.append(part);
  }
  const out = document.createElement('span');
  reply.text.append(out);
  scrollDown();

  running = new AbortController();
  $('stop').disabled = false;
  $('send').disabled = true;
  const start = performance.now();
  let first = null, pieces = 0;
  try {
    const response = await fetch(chat ? '/v1/chat/completions' : '/v1/completions', {
      method: 'POST', signal: running.signal,
      headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error((await response.json()).error?.message || `HTTP ${response.status}`);
    for await (const event of events(response)) {
      if (event.error) throw new Error(event.error.message);
      const choice = event.choices?.[0];
      const piece = choice ? (chat ? choice.delta?.content : choice.text) : null;
      if (piece) {
        first ??= performance.now() - start;
        ++pieces;
        out.append(piece);
        scrollDown();
      }
      const tokens = event.usage?.completion_tokens ?? pieces;
      const seconds = (performance.now() - start) / 1000;
      reply.figures.textContent = `${tokens} tokens, ${(tokens / seconds).toFixed(1)}/s` +
        (first === null ? '' : `, first after ${first.toFixed(0)} ms`);
    }
  } catch (error) {
    if (error.name === 'AbortError') reply.figures.textContent += ' (stopped)';
    else reply.fail(error.message);
  }
  if (out.textContent !== '') {
    if (chat) messages.push({role: 'assistant', content: out.textContent});
  } else {  // refused, or stopped before it began: as if it had not been sent
    if (chat) messages.pop();
    if ($('prompt').value === '') $('prompt').value = prompt;
  }
  scrollDown();
  running = null;
  $('stop').disabled = true;
  $('send').disabled = false;
}

export function start(model) {
  const submit = () => {
    const prompt = $('prompt').value;
    if (running || prompt.trim() === '') return;
    $('prompt').value = '';
    send(prompt, model());
  };
  $('form').addEventListener('submit', (event) => { event.preventDefault(); submit(); });
  $('prompt').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); submit(); }
  });
  $('stop').addEventListener('click', () => running?.abort());
  $('clear').addEventListener('click', () => {
    running?.abort();
    messages.length = 0;
    for (const node of document.querySelectorAll('#log .turn')) node.remove();
    $('prompt').focus();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') running?.abort();
    const typing = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName);
    if (event.key === '/' && !typing) { event.preventDefault(); $('prompt').focus(); }
  });
  for (const radio of document.querySelectorAll('input[name=mode]')) {
    radio.addEventListener('change', () => {
      $('prompt').placeholder = radio.value === 'chat' ? 'Message' : 'Text to continue';
    });
  }
}
