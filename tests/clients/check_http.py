"""curl and plain sockets: what is on the wire, and input that is broken or hostile."""

import concurrent.futures
import json
import re
import socket
import time

from support import FAST, SIM, Server, check, curl, http_request, raw_exchange, sse_events

CHAT = "/v1/chat/completions"
COMPLETE = "/v1/completions"
HELLO = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}


@check(flags=FAST)
def a_chat_stream_is_byte_for_byte_what_clients_expect(server):
    body = {**HELLO, "stream": True, "stream_options": {"include_usage": True}}
    text = curl("-N", "-i", "-d", json.dumps(body), server.url + CHAT).decode()
    head, _, stream = text.partition("\r\n\r\n")
    assert re.search(r"(?im)^content-type: text/event-stream", head), head
    assert re.search(r"(?im)^cache-control: no-cache", head), head
    *chunks, done = sse_events(stream)
    assert done == "[DONE]"
    first = json.loads(chunks[0])
    front = json.dumps({"id": first["id"], "object": "chat.completion.chunk",
                        "created": first["created"], "model": server.model},
                       separators=(",", ":"))[:-1]
    delta = '{"index":0,"delta":%s,"logprobs":null,"finish_reason":null}'
    expected = [front + ',"choices":[' + delta % d + '],"usage":null}' for d in (
        '{"role":"assistant","content":""}', '{"content":" "}', '{"content":"T"}',
        '{"content":"h"}')]
    assert chunks[:4] == expected, chunks
    end = json.loads(chunks[4])["choices"][0]
    assert end["delta"] == {} and end["finish_reason"] == "length"
    prompt = len("user: Hi\n")
    usage = json.loads(chunks[5])
    assert usage["choices"] == [] and usage["usage"] == {
        "prompt_tokens": prompt, "completion_tokens": 3, "total_tokens": prompt + 3,
        "prompt_tokens_details": {"cached_tokens": 0}}, usage
    assert len(chunks) == 6


@check(flags=FAST)
def without_include_usage_the_word_usage_is_nowhere(server):
    for path, body in ((CHAT, HELLO), (COMPLETE, {"prompt": "a"})):
        _, _, text = server.post(path, {**body, "stream": True})
        assert "usage" not in text and sse_events(text)[-1] == "[DONE]", text


@check(flags=FAST)
def a_completion_stream_has_text_pieces_that_end_with_done(server):
    _, headers, text = server.post(COMPLETE, {"prompt": "a", "max_tokens": 2, "stream": True})
    assert headers["Content-Type"].startswith("text/event-stream")
    *chunks, done = sse_events(text)
    assert done == "[DONE]"
    choices = [json.loads(c)["choices"][0] for c in chunks]
    assert [c["text"] for c in choices] == [" ", "T", ""], choices
    assert [c["finish_reason"] for c in choices] == [None, None, "length"]
    assert {json.loads(c)["object"] for c in chunks} == {"text_completion"}


@check(flags=FAST)
def a_response_stream_names_its_events(server):
    _, _, text = server.post("/v1/responses", {"input": "a", "max_output_tokens": 2,
                                               "stream": True})
    for part in text.removesuffix("\n\n").split("\n\n"):
        name, data = part.split("\n")
        assert name == "event: " + json.loads(data.removeprefix("data: "))["type"], part


@check(flags=FAST)
def errors_have_openai_s_shape_with_the_right_status(server):
    assert server.refused("/nope", {}, 404)["type"] == "not_found_error"
    server.refused("/health", {}, 405)
    server.refused(CHAT, b"{", 400)
    server.refused(CHAT, {}, 400, "messages")
    got = curl("-i", server.url + CHAT).decode()
    assert got.startswith("HTTP/1.1 405") and json.loads(got.partition("\r\n\r\n")[2])["error"]
    assert re.search(r"(?im)^allow: POST", got), got
    for path in (CHAT, COMPLETE, "/v1/responses"):
        code, _, _ = server.post(path, {**HELLO, "model": "gpt-x"})
        assert code == 404, (path, code)


@check(flags=(*FAST, "--max-body-bytes", "65536"))
def a_body_that_is_too_big_is_a_413_that_states_the_limit(server):
    big = b'{"prompt":"' + b"a" * 70_000 + b'"}'
    for more in (("-H", "Expect: 100-continue"), ("-H", "Transfer-Encoding: chunked"), ()):
        got = curl("-i", *more, "--data-binary", "@-", server.url + COMPLETE, give=big).decode()
        assert "HTTP/1.1 413" in got and "65536" in got, got
    assert server.post(COMPLETE, {"prompt": "a"})[0] == 200


@check(flags=FAST)
def head_has_the_headers_and_no_body(server):
    for path in ("/health", "/v1/models", "/metrics", "/"):
        got = curl("-I", server.url + path).decode()
        assert got.startswith("HTTP/1.1 200") and got.endswith("\r\n\r\n"), got
    # The next answer on the connection is in place.
    request = b"HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    got = raw_exchange(server.port, request + last)
    assert got.count(b"HTTP/1.1 200") == 2 and b'"version"' in got, got


@check(flags=FAST)
def expect_100_continue_is_answered_before_the_body(server):
    body = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                  b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert s.recv(4096).startswith(b"HTTP/1.1 100 ")
        s.sendall(body)
        got = b""
        while piece := s.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 200") and b'"text":" "' in got


@check(flags=(*FAST, "--allowed-origins", "https://good.example"))
def pages_of_listed_origins_may_call_and_others_may_not(server):
    def options(origin):
        return curl("-i", "-X", "OPTIONS", "-H", "Origin: " + origin, "-H",
                    "Access-Control-Request-Method: POST", server.url + CHAT).decode()

    got = options("https://good.example")
    assert re.search(r"(?im)^access-control-allow-origin: https://good.example\r$", got), got
    assert re.search(r"(?im)^access-control-allow-headers: .*authorization", got), got
    assert "access-control" not in options("https://bad.example").lower()
    code, headers, _ = server.post(CHAT, HELLO, Origin="https://good.example")
    assert code == 200 and headers["Access-Control-Allow-Origin"] == "https://good.example"
    assert server.post(CHAT, HELLO, Origin="https://bad.example")[0] == 403
    assert server.post(CHAT, HELLO, Origin=server.url)[0] == 200


@check("C 27", FAST)
def empty_prompts_are_refused_and_the_server_lives(server):
    for prompt in ("", [], [[]], [""], ["a", ""], None, {}, 5):
        server.refused(COMPLETE, {"prompt": prompt}, 400, None)
    server.refused(CHAT, {"messages": []}, 400, "messages")
    for given in ("", []):
        server.refused("/v1/responses", {"input": given}, 400)
    assert server.post(CHAT, HELLO)[0] == 200


@check("C 25", (*SIM[:2], "--step-time", "5ms", "--num-gpu-blocks-override", "20",
                "--max-model-len", "auto"))
def a_prompt_beyond_what_memory_holds_is_refused_with_both_numbers(server):
    error = server.refused(COMPLETE, {"prompt": "x" * 330, "max_tokens": 1}, 400, "prompt")
    # 20 blocks of 16 tokens, one of which may be set aside.
    assert error["code"] == "context_length_exceeded"
    numbers = [int(n) for n in re.findall(r"\d+", error["message"])]
    assert 330 in numbers and any(288 <= n <= 320 for n in numbers), error
    assert server.post(COMPLETE, {"prompt": "x" * 200, "max_tokens": 1})[0] == 200


@check("H 56", (*FAST, "--max-body-bytes", "33554432"))
def nesting_without_end_is_refused(server):
    for depth in (3_000, 1_000_000):
        server.refused(COMPLETE, b"[" * depth)
        server.refused(COMPLETE, b'{"prompt":' + b"[" * depth)
        server.refused(CHAT, b'{"messages":[{"role":"user","content":"a"}],"response_format":'
                       + b'{"a":' * depth + b"1" + b"}" * depth + b"}")
    assert server.post(CHAT, HELLO)[0] == 200


@check("H 58", FAST)
def a_body_that_is_not_utf_8_is_refused(server):
    server.refused(COMPLETE, b'{"prompt":"' + "\u4f60\u597d".encode("gbk") + b'"}')
    server.refused(COMPLETE, b'{"prompt":"\xed\xa0\x80"}')
    assert server.post(COMPLETE, {"prompt": "\u4f60\u597d \U0001f468\u200d\U0001f469"})[0] == 200


@check("H 60", FAST)
def token_ids_outside_the_vocabulary_are_refused(server):
    for prompt in ([-1, 5], [2**31], [2**63], [-(2**63)], [1e300], [1.5], [10**30], [[5], [-1]],
                   [True], ["a", 5], [5, "a"]):
        server.refused(COMPLETE, {"prompt": prompt})
    server.refused("/detokenize", {"tokens": [-1]})
    assert server.post(COMPLETE, {"prompt": [5, 6]})[0] == 200


@check("H 61", FAST)
def huge_numbers_are_refused_by_name(server):
    for field, value in (("n", 10**9), ("max_tokens", 10**18), ("top_logprobs", 10**9),
                         ("best_of", 10**9), ("n", -1), ("max_tokens", 2**63)):
        server.refused(CHAT, {**HELLO, "logprobs": True, field: value}, 400, field)
    server.refused(COMPLETE, {"prompt": ["a"] * 1024, "n": 128}, 400, "n")
    server.refused(COMPLETE, {"prompt": ["a"] * 100_000}, 400, "prompt")
    assert server.post(CHAT, HELLO)[0] == 200


@check("H 63", FAST)
def broken_json_is_refused(server):
    for body in (b"", b"{", b'{"prompt":"a",}', b'{"prompt":"a","temperature":NaN}',
                 b'{"prompt":"a","prompt":"b"}', b'{"prompt":"a"} x', b"\xff", b"null", b"3",
                 b'{"prompt":"a","temperature":1e999}', b'{"prompt":"\\ud800"}', b"{'prompt':1}"):
        server.refused(COMPLETE, body)
    assert server.post(COMPLETE, {"prompt": "a"})[0] == 200


@check("E 42", FAST)
def an_error_before_the_first_token_is_a_status_and_no_empty_stream(server):
    body = {"messages": [{"role": "user", "content": "x" * 3000}], "stream": True}
    code, headers, text = server.post(CHAT, body)
    assert code == 400 and headers["Content-Type"] == "application/json", (code, text)
    assert json.loads(text)["error"]["code"] == "context_length_exceeded"


@check("L 86")
def counters_only_grow_and_texts_are_whole_under_preemption():
    flags = (*SIM, "--step-time", "2ms", "--num-gpu-blocks-override", "30", "--max-num-seqs", "8",
             "--no-scheduler-reserve-full-isl")
    with Server(*flags) as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
        def answer(k):
            body = {"prompt": f"{k}" * 20, "max_tokens": 200, "ignore_eos": True, "stream": True}
            _, _, text = server.post(COMPLETE, body)
            return "".join(json.loads(c)["choices"][0]["text"] for c in sse_events(text)[:-1])

        running = [pool.submit(answer, k) for k in range(8)]
        last = {}
        while not all(f.done() for f in running):
            now = server.samples()
            for key, value in now.items():
                if key[0].endswith(("_total", "_count", "_sum", "_bucket")):
                    assert value >= last.get(key, 0), (key, last.get(key), value)
            last = now
            time.sleep(0.02)
        texts = {f.result() for f in running}
        # B 17: the texts of those that were preempted are like those of the others.
        assert len(texts) == 1 and len(texts.pop()) == 200
        assert server.total("vllm:num_preemptions_total") > 0
        assert server.total("vllm:generation_tokens_total") == 8 * 200
        hits = server.total("vllm:prefix_cache_hits_total")
        assert hits <= server.total("vllm:prefix_cache_queries_total")


# Of wire.md: what public dashboards and gateways ask for.
SERIES = """num_requests_running num_requests_waiting kv_cache_usage_perc cache_config_info
prefix_cache_queries_total prefix_cache_hits_total num_preemptions_total prompt_tokens_total
generation_tokens_total prompt_tokens_by_source_total request_success_total
request_prompt_tokens_bucket request_generation_tokens_bucket request_params_n_bucket
request_params_max_tokens_bucket iteration_tokens_total_bucket time_to_first_token_seconds_bucket
inter_token_latency_seconds_bucket request_time_per_output_token_seconds_bucket
e2e_request_latency_seconds_bucket request_queue_time_seconds_bucket
request_inference_time_seconds_bucket request_prefill_time_seconds_bucket
request_decode_time_seconds_bucket""".split()
TTFT_BOUNDS = """0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160
640 2560 +Inf""".split()


@check("L", FAST)
def metrics_have_vllm_s_names_labels_and_buckets(server):
    assert server.post(COMPLETE, {"prompt": "abc", "max_tokens": 5, "n": 2})[0] == 200
    samples = server.samples()
    names = {key[0] for key in samples}
    missing = [s for s in SERIES if "vllm:" + s not in names]
    assert not missing, missing
    for key in samples:
        if key[0].startswith("vllm:"):
            labels = dict(key[1:])
            assert labels["model_name"] == server.model and "engine" in labels, key
    bounds = [dict(key[1:])["le"] for key in samples
              if key[0] == "vllm:time_to_first_token_seconds_bucket"]
    assert [float(b) for b in bounds] == [float(b) for b in TTFT_BOUNDS], bounds
    assert samples[("vllm:kv_cache_usage_perc", ("engine", "0"), ("model_name", server.model))] <= 1


@check(flags=FAST)
def an_explanation_tells_what_happened_to_a_request(server):
    _, headers, text = server.post(CHAT, HELLO)
    name = json.loads(text)["id"]
    assert headers["X-Request-Id"] == name
    told = server.get(f"/v1/requests/{name}/explain")
    for step in ("Submitted: 9 prompt tokens", "Admitted", "Finished: it reached its limit"):
        assert step in told, told
    code, _, _ = server.post(f"/v1/requests/{name}/explain", {})
    assert code == 405
    assert curl("-o", "/dev/null", "-w", "%{http_code}",
                server.url + "/v1/requests/chatcmpl-x/explain") == b"404"


@check(flags=FAST)
def tokens_and_texts_convert_both_ways(server):
    _, _, text = server.post("/tokenize", {"prompt": "h\u00e9!"})
    answer = json.loads(text)
    assert answer["tokens"] == list("h\u00e9!".encode()) and answer["count"] == 4
    assert answer["max_model_len"] == 2048
    _, _, text = server.post("/detokenize", {"tokens": answer["tokens"]})
    assert json.loads(text) == {"prompt": "h\u00e9!"}
