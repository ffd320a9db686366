"""Python's websockets and node's ws at /v1/responses."""

import asyncio
import json
import random
import socket
import subprocess
import time

import websockets
from websockets.exceptions import ConnectionClosed, InvalidStatus

from support import FAST, NODE, SIM, Server, check, http_request

ENDS = {"response.completed", "response.incomplete", "response.failed", "error"}
LONG = {"max_output_tokens": 1500, "ignore_eos": True}


def connect(server, **more):
    return websockets.connect(server.socket_url, **{"max_size": None, **more})


async def say(ws, kind, **fields):
    await ws.send(json.dumps({"type": kind, **fields}))


async def create(ws, **fields):
    await say(ws, "response.create", **{"input": "Hello", "max_output_tokens": 10, **fields})


async def hear(ws):
    return json.loads(await asyncio.wait_for(ws.recv(), 20))


async def events_to_the_end(ws, ends=ENDS):
    events = [await hear(ws)]
    while events[-1]["type"] not in ends:
        events.append(await hear(ws))
    return events


async def close_code(ws):
    try:
        while True:
            await asyncio.wait_for(ws.recv(), 20)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None


async def still_answers(ws):
    await create(ws, id="still-alive")
    events = await events_to_the_end(ws)
    assert events[-1]["type"] == "response.incomplete" and events[-1]["id"] == "still-alive"


@check(flags=FAST)
async def events_come_in_order_and_number_from_zero(server):
    async with connect(server) as ws:
        await create(ws)
        events = await events_to_the_end(ws)
    kinds = [e["type"] for e in events]
    assert kinds[:4] == ["response.created", "response.in_progress", "response.output_item.added",
                         "response.content_part.added"], kinds
    assert kinds[4:-4] == ["response.output_text.delta"] * 10, kinds
    assert kinds[-4:] == ["response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.incomplete"], kinds
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    text = "".join(e["delta"] for e in events[4:-4])
    last = events[-1]
    assert text == last["response"]["output"][0]["content"][0]["text"]
    assert last["response"]["usage"]["output_tokens"] == 10
    timings = last["timings"]
    assert 0 <= timings["queue_ms"] <= timings["ttft_ms"] <= timings["total_ms"], timings
    assert last["response"]["model"].startswith("simulated-")


@check(flags=FAST)
async def several_responses_share_a_socket_under_the_client_s_names(server):
    async with connect(server) as ws:
        for k in range(8):
            await create(ws, id=f"r{k}", input="x" * (k + 1), max_output_tokens=30,
                         ignore_eos=True)
        order, ended, numbers = [], {}, {}
        while len(ended) < 8:
            event = await hear(ws)
            name = event["id"]
            order.append(name)
            assert event["sequence_number"] == numbers.get(name, 0)
            numbers[name] = event["sequence_number"] + 1
            if event["type"] in ENDS:
                ended[name] = event
    changes = sum(a != b for a, b in zip(order, order[1:]))
    assert changes > 8 * 20, "the responses came one after another"
    # "user: " + text + "\n" is the placeholder template.
    for k in range(8):
        assert ended[f"r{k}"]["response"]["usage"]["input_tokens"] == 8 + k


@check(flags=FAST)
async def a_stream_id_comes_back_as_stream_id(server):
    async with connect(server) as ws:
        await create(ws, stream_id="s1")
        events = await events_to_the_end(ws)
        assert all(e.get("stream_id") == "s1" and "id" not in e for e in events), events[0]
        await create(ws, stream_id="s2", temperature=9)
        error = await hear(ws)
        assert error["type"] == "error" and error.get("stream_id") == "s2", error


@check(flags=FAST)
async def a_cancelled_response_ends_once_and_no_text_follows(server):
    async with connect(server) as ws:
        await create(ws, id="a", **LONG)
        while (await hear(ws))["type"] != "response.output_text.delta":
            pass
        await say(ws, "response.cancel", id="a")
        events = await events_to_the_end(ws)
        assert events[-1]["response"]["status"] == "cancelled", events[-1]
        await still_answers(ws)
        await say(ws, "response.cancel", id="a")
        error = await hear(ws)
        assert error["type"] == "error" and error["status"] == 404, error
    server.becomes_idle()


@check("D 31", (*SIM, "--step-time", "20ms", "--num-gpu-blocks-override", "4096",
                "--max-num-seqs", "2", "--max-num-batched-tokens", "64"))
async def a_cancel_at_any_hop_frees_once_and_ends_once(server):
    # Before admission, while waiting, within a prefill of many chunks, at the last token.
    async with connect(server) as ws:
        for k, pause in enumerate([0, 0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1] * 2):
            prompt = "y" * (1200 if k % 2 else 3)
            tokens = 1 + k % 3
            others = [f"{k}-{j}" for j in range(3)]
            for name in others:
                await create(ws, id=name, input=prompt, max_output_tokens=tokens)
            await asyncio.sleep(pause)
            for name in others:
                await say(ws, "response.cancel", id=name)
            ends = {name: [] for name in others}
            # An answer that was over already: the cancel is an error, beside its end.
            marks = 0
            await create(ws, id=f"mark {k}", input="m", max_output_tokens=1)
            while not marks:
                event = await hear(ws)
                if event["type"] == "error":
                    assert event["status"] == 404, event
                elif event["type"] in ENDS:
                    if event["id"] == f"mark {k}":
                        marks = 1
                    else:
                        ends[event["id"]].append(event["type"])
                else:
                    assert event["id"] not in ends or not ends[event["id"]], event
            assert all(len(e) == 1 for e in ends.values()), ends
    server.becomes_idle()


@check(flags=FAST)
async def a_name_that_is_under_way_is_refused_and_the_first_goes_on(server):
    async with connect(server) as ws:
        await create(ws, id="a", max_output_tokens=60, ignore_eos=True)
        await create(ws, id="a")
        events = await events_to_the_end(ws, ENDS - {"error"})
        errors = [e for e in events if e["type"] == "error"]
        assert [e["error"]["code"] for e in errors] == ["response_already_in_flight"], errors
        assert events[-1]["response"]["usage"]["output_tokens"] == 60
        await still_answers(ws)


@check("H 63", FAST)
async def bad_messages_get_an_error_event_and_the_socket_lives(server):
    bad = ["{", "[]", "null", "", '{"type":"response.create","input":"a",}', '{"type":"dance"}',
           '{"type":"response.create"}', '{"type":"response.create","input":""}',
           '{"type":"response.create","input":[]}', '{"type":"response.create","input":"a","x":1}',
           '{"type":"response.create","input":"a","type":"response.create"}',
           '{"type":"response.create","input":"a","temperature":NaN}', "[" * 5000,
           '{"type":"response.cancel"}', '{"type":"response.create","id":"","input":"a"}']
    async with connect(server) as ws:
        for message in bad:
            await ws.send(message)
            event = await hear(ws)
            assert event["type"] == "error" and event["status"] in (400, 404), (message, event)
            assert set(event["error"]) == {"message", "type", "param", "code"}, event
        await still_answers(ws)


@check(flags=FAST)
async def a_binary_message_closes_with_1003(server):
    async with connect(server) as ws:
        await ws.send(b"\x00\x01")
        assert await close_code(ws) == 1003


@check(flags=(*FAST, "--max-body-bytes", "65536"))
async def a_message_that_is_too_big_closes_with_1009(server):
    for compression in (None, "deflate"):
        ws = await connect(server, compression=compression)
        sending = asyncio.create_task(ws.send('{"input":"' + "a" * 70_000 + '"}'))
        assert await close_code(ws) == 1009
        await asyncio.gather(sending, return_exceptions=True)


@check(flags=FAST)
async def compression_is_agreed_and_texts_are_the_same(server):
    texts = []
    for compression in ("deflate", None):
        async with connect(server, compression=compression) as ws:
            agreed = [e.name for e in ws.protocol.extensions]
            assert agreed == (["permessage-deflate"] if compression else []), agreed
            await create(ws, input="x" * 1000, max_output_tokens=300, ignore_eos=True)
            texts.append("".join(e.get("delta", "") for e in await events_to_the_end(ws)))
    assert texts[0] == texts[1] and len(texts[0]) == 300


@check(flags=FAST)
async def a_dropped_socket_cancels_what_it_carried(server):
    ws = await connect(server)
    for k in range(10):
        await create(ws, id=str(k), **LONG)
    running = 0
    while running < 10:
        await hear(ws)
        running = (await asyncio.to_thread(server.status))["running"]
    ws.transport.abort()
    await asyncio.to_thread(server.becomes_idle, 2)


@check(flags=FAST)
async def sockets_are_elsewhere_refused_with_404(server):
    try:
        async with websockets.connect(server.url.replace("http", "ws") + "/v1/nothing"):
            raise AssertionError("it was accepted")
    except InvalidStatus as refused:
        assert refused.response.status_code == 404


@check(flags=(*FAST, "--api-key", "first"))
async def a_socket_needs_the_key_too_in_a_header_or_a_subprotocol(server):
    try:
        async with connect(server):
            raise AssertionError("it was accepted")
    except InvalidStatus as refused:
        assert refused.response.status_code == 401
    async with connect(server, additional_headers={"Authorization": "Bearer first"}) as ws:
        await still_answers(ws)
    offered = ["octavo", "openai-insecure-api-key.first"]
    async with connect(server, subprotocols=offered) as ws:
        assert ws.subprotocol == "octavo"
        await still_answers(ws)


@check("I 64", (*FAST, "--max-body-bytes", "33554432"))
async def pings_are_answered_between_the_fragments_of_a_big_message(server):
    async with connect(server, compression=None, ping_interval=None) as ws:
        pongs = 0

        async def fragments():
            nonlocal pongs
            yield '{"type":"response.create","input":"'
            for k in range(512):
                yield "z" * 16384
                if k % 64 == 63:
                    # Comes back while the message is not complete, or never.
                    await asyncio.wait_for(await ws.ping(), 10)
                    pongs += 1
            yield '"}'

        await ws.send(fragments())
        assert pongs == 8
        event = await hear(ws)
        assert event["error"]["code"] == "context_length_exceeded", event
        await still_answers(ws)


@check("I 66", (*SIM, "--step-time", "20ms", "--num-gpu-blocks-override", "4096"))
async def deltas_come_one_by_one_and_not_at_the_end(server):
    async with connect(server) as ws:
        await create(ws, max_output_tokens=100, ignore_eos=True)
        arrived = []
        while (event := await hear(ws))["type"] != "response.output_text.done":
            if event["type"] == "response.output_text.delta":
                arrived.append(time.monotonic())
    assert len(arrived) == 100
    # The machine takes 99 steps of 20 ms between the first and the last.
    assert arrived[-1] - arrived[0] > 0.9 * 99 * 0.020, arrived[-1] - arrived[0]


@check("I 67", (*SIM, "--step-time", "3ms", "--num-gpu-blocks-override", "8192"))
async def a_reader_that_stands_still_harms_neither_others_nor_memory(server):
    before = server.resident_bytes()
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", server.port))
    ws = await connect(server, sock=slow, max_queue=1, ping_interval=None, compression=None)
    for k in range(40):
        await create(ws, id=f"a name of some length, so that events are long {k}",
                     include=["message.output_text.logprobs"], **LONG)
    ws.transport.pause_reading()

    async def reader(k):
        async with connect(server) as other:
            await create(other, input=f"{k}", max_output_tokens=500, ignore_eos=True)
            return (await events_to_the_end(other))[-1]["response"]["usage"]["output_tokens"]

    assert await asyncio.gather(*(reader(k) for k in range(15))) == [500] * 15
    grown = server.resident_bytes() - before
    assert grown < 100 << 20, f"{grown >> 20} MiB more"
    ws.transport.abort()
    await asyncio.to_thread(server.becomes_idle, 10)


async def vanish_from_a_socket(server, rng):
    ws = await connect(server, compression=None)
    await create(ws, input="v" * rng.randint(1, 300), **LONG)
    for _ in range(rng.randint(0, 40)):
        await ws.recv()
    ws.transport.abort()


async def vanish_from_a_stream(server, rng):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    body = {"messages": [{"role": "user", "content": "v" * rng.randint(1, 300)}], "stream": True,
            "ignore_eos": True}
    writer.write(http_request("/v1/chat/completions", body))
    for _ in range(rng.randint(0, 60)):
        await reader.readline()
    writer.transport.abort()


@check("D 30", FAST)
async def clients_that_vanish_at_random_tokens_leave_nothing_behind(server):
    rng = random.Random(30)

    async def crowd(size):
        ways = [vanish_from_a_socket, vanish_from_a_stream]
        await asyncio.gather(*(ways[k % 2](server, rng) for k in range(size)))
        await asyncio.to_thread(server.becomes_idle, 10)

    await crowd(100)
    files, memory = server.open_files(), server.resident_bytes()
    await crowd(200)
    for _ in range(100):
        if server.open_files() <= files:
            break
        await asyncio.sleep(0.05)
    assert server.open_files() <= files, f"{files} files before, {server.open_files()} after"
    grown = server.resident_bytes() - memory
    assert grown < 16 << 20, f"{grown >> 20} MiB more"


NODE_CLIENT = """
const WebSocket = require("ws");
const socket = new WebSocket(process.argv[1]);
const seen = { kinds: [], text: "", extensions: "" };
socket.on("open", () => {
  seen.extensions = socket.extensions;
  socket.send(JSON.stringify({ type: "response.create", id: "n", input: "Hello from node",
    max_output_tokens: 25, ignore_eos: true }));
});
socket.on("message", (data) => {
  const event = JSON.parse(data);
  seen.kinds.push(event.type);
  if (event.delta) seen.text += event.delta;
  if (event.type === "response.incomplete") {
    seen.whole = event.response.output[0].content[0].text;
    socket.close(1000);
  }
});
socket.on("close", (code) => { seen.code = code; console.log(JSON.stringify(seen)); });
"""


@check(flags=FAST)
def node_s_ws_hears_a_response_and_closes_cleanly(server):
    done = subprocess.run(["node", "-e", NODE_CLIENT, server.socket_url], cwd=NODE, text=True,
                          capture_output=True, timeout=30, check=True)
    seen = json.loads(done.stdout)
    assert seen["code"] == 1000 and seen["text"] == seen["whole"] and len(seen["text"]) == 25
    assert seen["kinds"].count("response.output_text.delta") == 25
    assert "permessage-deflate" in seen["extensions"]


@check("I 69")
async def a_long_prefill_is_kept_open_by_pings_and_comments():
    """Runs beside the others, as it waits for the server's own patience to end."""
    step_s = 21
    with Server(*SIM, "--step-time", f"{step_s}s", "--num-gpu-blocks-override", "64") as server:
        ws = await connect(server, ping_interval=None)
        pings = []
        answered = ws.protocol.recv_frame if hasattr(ws.protocol, "recv_frame") else None
        assert answered, "websockets has changed: no recv_frame"

        def recv_frame(frame):
            if frame.opcode.name == "PING":
                pings.append(time.monotonic())
            answered(frame)

        ws.protocol.recv_frame = recv_frame
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        body = {"prompt": "abc", "max_tokens": 1, "stream": True}
        writer.write(http_request("/v1/completions", body, "Connection: close"))
        await create(ws, max_output_tokens=1)
        text = (await asyncio.wait_for(reader.read(), 55)).decode()
        assert ": ping\n\n" in text and "data: [DONE]" in text, text
        while (await asyncio.wait_for(ws.recv(), 30)).find("output_text.delta") < 0:
            pass
        assert pings, "the server sent no ping"
        await ws.close()
        writer.close()
        total = server.total("vllm:time_to_first_token_seconds_sum")
        # L 88: the time to the first token has the whole of the prefill in it.
        assert total >= 2 * 0.99 * step_s, total
