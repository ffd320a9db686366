// The page at /: talks to the model over one WebSocket (/v1/responses) and shows what the
// engine does (/v1/status). Text from the model only ever becomes a text node.

const poll_ms = 500;
const answer_wait_ms = 5000;
const retry_ms_max = 8000;
const key_name = 'octavo-api-key';

const element = (id) => document.getElementById(id);
const address = (path) => new URL(path, document.baseURI);

let socket = null;
let retry_ms = 500;
let retry_timer = 0;
let model = '';
let next_id = 1;
let answer = null; // the one under way
let turns = []; // {role, content} of the conversation

// ---- asking the server

function headers() {
  const key = sessionStorage.getItem(key_name);
  return key ? { Authorization: `Bearer ${key}` } : {};
}

function ask(path) {
  const signal = AbortSignal.timeout(answer_wait_ms);
  return fetch(address(path), { headers: headers(), signal, cache: 'no-store' });
}

async function message_of(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the server answered ${response.status}`;
  }
}

// ---- the connection

function show_connection(state, text) {
  const line = element('connection');
  line.dataset.state = state;
  if (line.textContent !== text) line.textContent = text;
}

function connect() {
  clearTimeout(retry_timer);
  show_connection('waiting', 'connecting …');
  const target = address('v1/responses');
  target.protocol = target.protocol === 'https:' ? 'wss:' : 'ws:';
  const key = sessionStorage.getItem(key_name);
  // Browsers cannot set headers here: the key travels as a subprotocol.
  const protocols = key ? ['octavo', `openai-insecure-api-key.${key}`] : ['octavo'];
  let opened = false;
  try {
    socket = new WebSocket(target, protocols);
  } catch {
    ask_for_key('This key has characters that a browser cannot send.');
    return;
  }
  const mine = socket;
  mine.onopen = () => {
    opened = true;
    retry_ms = 500;
    element('key-form').hidden = true;
    show_connection('open', 'connected');
    update_buttons();
  };
  mine.onmessage = (message) => hear(JSON.parse(message.data));
  mine.onclose = (event) => {
    if (mine !== socket) return;
    socket = null;
    if (answer) fail('The connection was lost.');
    update_buttons();
    if (opened) retry(event.reason || 'connection lost');
    else explain_refusal();
  };
}

function retry(why) {
  const wait = retry_ms;
  retry_ms = Math.min(2 * retry_ms, retry_ms_max);
  show_connection('lost', `${why}; trying again in ${wait / 1000} s`);
  retry_timer = setTimeout(connect, wait);
}

// A browser does not say why a WebSocket was refused; a plain request does.
async function explain_refusal() {
  try {
    const response = await ask('v1/models');
    if (response.status === 401) {
      const had_key = sessionStorage.getItem(key_name) !== null;
      ask_for_key(had_key ? await message_of(response) : '');
    } else if (response.ok) {
      retry('the server refused the connection');
    } else {
      retry(await message_of(response));
    }
  } catch {
    retry('the server does not answer');
  }
}

function ask_for_key(problem) {
  show_connection('lost', 'an API key is needed');
  element('key-form').hidden = false;
  element('key-error').textContent = problem;
  element('key').focus();
}

// ---- the conversation

function add(parent, tag, name, text = '') {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  parent.append(made);
  return made;
}

function add_turn(role, text) {
  element('hint').hidden = true;
  const turn = add(element('talk'), 'article', `turn ${role}`);
  add(turn, 'h2', '', role === 'user' ? 'You' : model || 'Model');
  const words = add(turn, 'div', 'words', text);
  scroll_down(true);
  return { turn, words };
}

function scroll_down(always) {
  const talk = element('talk');
  const near = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
  if (always || near) talk.scrollTop = talk.scrollHeight;
}

function send(text) {
  turns.push({ role: 'user', content: text });
  add_turn('user', text);
  request_answer();
}

function request_answer() {
  const { turn, words } = add_turn('assistant', '');
  const figures = add(turn, 'p', 'figures', 'waiting for the first token …');
  answer = { id: String(next_id++), turn, words, figures, text: '', shown: 0, painted: 0 };
  const event = { type: 'response.create', id: answer.id, input: turns };
  if (model) event.model = model;
  const temperature = element('temperature').valueAsNumber;
  const max_tokens = element('max-tokens').valueAsNumber;
  if (!Number.isNaN(temperature)) event.temperature = temperature;
  if (!Number.isNaN(max_tokens)) event.max_output_tokens = max_tokens;
  socket.send(JSON.stringify(event));
  update_buttons();
}

function stop() {
  if (answer && socket) socket.send(JSON.stringify({ type: 'response.cancel', id: answer.id }));
}

function hear(event) {
  if (!answer || (event.id !== undefined && event.id !== answer.id)) return;
  switch (event.type) {
    case 'response.output_text.delta':
      answer.text += event.delta;
      // One paint a frame, however many tokens came.
      if (!answer.painted) answer.painted = requestAnimationFrame(() => paint(answer));
      break;
    case 'response.completed':
    case 'response.incomplete':
      finish(event);
      break;
    case 'response.failed':
      fail(event.response?.error?.message ?? 'The engine could not go on.');
      break;
    case 'error':
      fail(event.error?.message ?? 'The server reports an error.');
      break;
  }
}

function paint(of) {
  if (!of) return;
  of.painted = 0;
  if (of.text.length === of.shown) return;
  of.words.append(of.text.slice(of.shown));
  of.shown = of.text.length;
  scroll_down(false);
}

function end_answer() {
  const ended = answer;
  cancelAnimationFrame(ended.painted);
  paint(ended);
  answer = null;
  update_buttons();
  return ended;
}

function finish(event) {
  const ended = end_answer();
  turns.push({ role: 'assistant', content: ended.text });
  ended.figures.textContent = figures_of(event);
  scroll_down(false);
}

function fail(why) {
  const ended = end_answer();
  // A question without an answer is none of the conversation: templates want both.
  const question = turns.pop();
  ended.figures.remove();
  const problem = add(ended.turn, 'p', 'problem', why);
  problem.setAttribute('role', 'alert');
  const again = add(problem, 'button', '', 'Try again');
  again.type = 'button';
  again.onclick = () => {
    if (answer || !is_open()) return;
    ended.turn.remove();
    turns.push(question);
    request_answer();
  };
  scroll_down(true);
}

const milliseconds = (ms) => (ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`);

function figures_of(event) {
  const { timings, response } = event;
  const usage = response?.usage ?? {};
  const parts = [];
  const tokens = usage.output_tokens ?? 0;
  // A cancelled answer has no times.
  if (timings && timings.total_ms > 0) {
    parts.push(`queued ${milliseconds(timings.queue_ms)}`);
    parts.push(`first token ${milliseconds(timings.ttft_ms)}`);
    const rest_ms = timings.total_ms - timings.ttft_ms;
    if (tokens > 1 && rest_ms > 0) {
      parts.push(`${(((tokens - 1) * 1000) / rest_ms).toFixed(1)} tokens/s`);
    }
  }
  if (usage.input_tokens !== undefined) {
    const cached = usage.input_tokens_details?.cached_tokens ?? 0;
    parts.push(`${usage.input_tokens} tokens in (${cached} cached), ${tokens} out`);
  }
  if (response?.status === 'cancelled') parts.push('stopped');
  else if (response?.status === 'incomplete') parts.push('cut at the limit of tokens');
  return parts.join(' · ');
}

// ---- the engine now

const highest = { waiting: 1, running: 1 };

function show_bar(name, value, text) {
  highest[name] = Math.max(highest[name], value);
  element(name).max = highest[name];
  element(name).value = value;
  element(`${name}-text`).textContent = text;
}

function show_status(status) {
  model = status.model ?? model;
  element('model').textContent = model;
  show_bar('waiting', status.waiting, `${status.waiting} waiting`);
  show_bar('running', status.running, `${status.running} running`);
  element('blocks').max = Math.max(1, status.blocks_total);
  element('blocks').value = status.blocks_used;
  element('blocks-text').textContent = `${status.blocks_used} / ${status.blocks_total}`;
  const hits = status.prefix_hit_rate;
  element('rates').textContent =
    `${(status.tokens_per_s ?? 0).toFixed(1)} tokens/s` +
    (hits === undefined || hits === null ? '' : ` · ${(100 * hits).toFixed(0)} % of prompts cached`);
}

async function poll() {
  if (!document.hidden) {
    try {
      const response = await ask('v1/status');
      if (response.ok) show_status(await response.json());
      else element('rates').textContent = await message_of(response);
    } catch {
      element('rates').textContent = 'no figures: the server does not answer';
    }
  }
  setTimeout(poll, poll_ms);
}

// ---- what the user does

function is_open() {
  return socket !== null && socket.readyState === WebSocket.OPEN;
}

function update_buttons() {
  element('send').disabled = !is_open() || answer !== null;
  element('stop').disabled = answer === null;
  element('talk').setAttribute('aria-busy', String(answer !== null));
}

element('ask').onsubmit = (event) => {
  event.preventDefault();
  const text = element('text').value.trim();
  if (!text || answer || !is_open()) return;
  element('text').value = '';
  send(text);
};

element('text').onkeydown = (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  element('ask').requestSubmit();
};

document.onkeydown = (event) => {
  if (event.key === 'Escape') stop();
};

element('stop').onclick = stop;

element('clear').onclick = () => {
  stop();
  answer = null;
  turns = [];
  for (const turn of document.querySelectorAll('.turn')) turn.remove();
  element('hint').hidden = false;
  update_buttons();
  element('text').focus();
};

element('key-form').onsubmit = (event) => {
  event.preventDefault();
  sessionStorage.setItem(key_name, element('key').value.trim());
  element('key').value = '';
  element('key-form').hidden = true;
  connect();
};

update_buttons();
connect();
poll();
element('text').focus();
