"""The openai package against a simulated machine."""

import functools

import openai

from support import FAST, SIM, check

MESSAGES = [{"role": "user", "content": "Tell me something."}]


@functools.cache  # it takes a third of a second to make one
def client(server, key="none"):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0, timeout=30)


def ask(server, **more):
    fields = {"model": server.model, "messages": MESSAGES, "max_tokens": 12, **more}
    return client(server).chat.completions.create(**fields)


def complete(server, prompt, **more):
    fields = {"model": server.model, "prompt": prompt, "max_tokens": 8, **more}
    return client(server).completions.create(**fields)


def raises(kind, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


@check(flags=FAST)
def a_chat_is_answered_with_text_a_reason_and_usage(server):
    answer = ask(server)
    assert answer.id.startswith("chatcmpl-") and answer.object == "chat.completion"
    assert answer.model == server.model and answer.model.startswith("simulated-")
    (choice,) = answer.choices
    assert choice.message.role == "assistant" and choice.finish_reason == "length"
    # A byte is a token here.
    assert len(choice.message.content) == 12 == answer.usage.completion_tokens
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 12


@check(flags=FAST)
def a_streamed_chat_is_a_role_then_deltas_then_one_finish_without_usage(server):
    chunks = list(ask(server, stream=True))
    assert len({(c.id, c.created, c.model, c.object) for c in chunks}) == 1
    assert chunks[0].object == "chat.completion.chunk"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[0].choices[0].delta.content == ""
    assert all(c.choices[0].delta.role is None for c in chunks[1:])
    assert [c.choices[0].finish_reason for c in chunks] == [None] * (len(chunks) - 1) + ["length"]
    assert chunks[-1].choices[0].delta.content is None
    assert all(c.usage is None for c in chunks)
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text == ask(server).choices[0].message.content


@check(flags=FAST)
def include_usage_adds_one_last_chunk_without_choices(server):
    chunks = list(ask(server, stream=True, stream_options={"include_usage": True}))
    assert all(c.usage is None and c.choices for c in chunks[:-1])
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 12


@check(flags=FAST)
def stream_options_without_stream_are_refused(server):
    error = raises(openai.BadRequestError, ask, server, stream_options={"include_usage": True})
    assert error.param == "stream_options", error


@check(flags=FAST)
def two_samples_have_a_role_and_a_finish_each_and_one_usage_in_all(server):
    whole = ask(server, n=2)
    assert [c.index for c in whole.choices] == [0, 1] and whole.usage.completion_tokens == 24
    chunks = list(ask(server, n=2, stream=True, stream_options={"include_usage": True}))
    choices = [c.choices[0] for c in chunks[:-1]]
    assert [(c.index, c.delta.role) for c in choices[:2]] == [(0, "assistant"), (1, "assistant")]
    assert sorted(c.index for c in choices if c.finish_reason) == [0, 1]
    for index in (0, 1):
        assert len("".join(c.delta.content or "" for c in choices if c.index == index)) == 12
    assert chunks[-1].usage.completion_tokens == 24


@check(flags=FAST)
def chat_logprobs_have_tokens_and_their_bytes(server):
    answer = ask(server, logprobs=True, top_logprobs=2)
    content = answer.choices[0].logprobs.content
    assert len(content) == 12
    assert b"".join(bytes(t.bytes) for t in content).decode() == answer.choices[0].message.content
    assert all(t.token and t.logprob <= 0 for t in content)
    assert ask(server).choices[0].logprobs is None
    streamed = list(ask(server, logprobs=True, top_logprobs=2, stream=True))
    listed = [t for c in streamed if c.choices[0].logprobs for t in c.choices[0].logprobs.content]
    assert [t.token for t in listed] == [t.token for t in content]


@check(flags=FAST)
def completions_take_a_text_tokens_and_lists_of_both(server):
    assert complete(server, "ab").usage.prompt_tokens == 2
    assert complete(server, [97, 98, 99]).usage.prompt_tokens == 3
    for prompt in (["ab", "cde"], [[97, 98], [99, 100, 101]]):
        answer = complete(server, prompt, n=2)
        assert [c.index for c in answer.choices] == [0, 1, 2, 3]
        assert answer.usage.prompt_tokens == 5 and answer.usage.completion_tokens == 32


@check(flags=FAST)
def a_streamed_completion_gives_the_text_of_the_whole_one(server):
    chunks = list(complete(server, "ab", stream=True, stream_options={"include_usage": True}))
    assert chunks[0].id.startswith("cmpl-") and chunks[0].object == "text_completion"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 8
    text = "".join(c.choices[0].text for c in chunks[:-1])
    assert text == complete(server, "ab").choices[0].text
    assert [c.choices[0].finish_reason for c in chunks[:-1]][-1] == "length"


@check(flags=FAST)
def completion_logprobs_have_tokens_and_offsets(server):
    logprobs = complete(server, "ab", logprobs=1).choices[0].logprobs
    assert "".join(logprobs.tokens) == complete(server, "ab").choices[0].text
    assert logprobs.text_offset == list(range(8)) and len(logprobs.token_logprobs) == 8
    assert all(len(top) >= 1 for top in logprobs.top_logprobs)


@check("C 28", FAST)
def echo_gives_the_prompt_back_with_and_without_tokens_after_it(server):
    answer = complete(server, "ab", echo=True)
    assert answer.choices[0].text == "ab" + complete(server, "ab").choices[0].text
    alone = complete(server, "ab", echo=True, max_tokens=0)
    assert alone.choices[0].text == "ab" and alone.usage.completion_tokens == 0


@check("C 28", FAST)
def echo_with_logprobs_is_answered_or_refused_by_name(server):
    try:
        answer = complete(server, "ab", echo=True, max_tokens=0, logprobs=1)
        assert answer.choices[0].logprobs.tokens == ["a", "b"]
        assert answer.choices[0].logprobs.token_logprobs[0] is None
    except openai.BadRequestError as refused:
        assert refused.param == "logprobs", refused
    complete(server, "ab")


@check(flags=FAST)
def a_response_is_created_and_streamed_with_the_same_text(server):
    create = client(server).responses.create
    fields = {"model": server.model, "input": "Hello", "max_output_tokens": 10}
    whole = create(**fields)
    assert whole.id.startswith("resp_") and whole.status == "incomplete"
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert len(whole.output_text) == 10 == whole.usage.output_tokens
    events = list(create(**fields, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    kinds = [e.type for e in events]
    assert kinds[:4] == ["response.created", "response.in_progress", "response.output_item.added",
                         "response.content_part.added"], kinds
    assert kinds[-4:] == ["response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.incomplete"], kinds
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == whole.output_text == events[-1].response.output_text


@check(flags=FAST)
def a_response_takes_instructions_and_turns(server):
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"},
             {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]}]
    answer = client(server).responses.create(model=server.model, input=turns,
                                             instructions="Be short.", max_output_tokens=4)
    # "role: text\n" for each turn; see the placeholder template.
    expected = "system: Be short.\nuser: Hi\nassistant: Ho\nuser: And now?\n"
    assert answer.usage.input_tokens == len(expected), answer.usage


@check(flags=FAST)
def models_are_listed_and_can_be_asked_for_one_by_one(server):
    models = client(server).models
    assert [m.id for m in models.list()] == [server.model]
    assert models.retrieve(server.model).owned_by == "octavo"
    error = raises(openai.NotFoundError, models.retrieve, "gpt-x")
    assert error.code == "model_not_found"


@check(flags=FAST)
def a_bad_field_is_a_bad_request_error_that_names_it(server):
    for field, value in (("temperature", 3), ("max_tokens", -1), ("top_p", 0), ("n", 0),
                         ("frequency_penalty", 9), ("logit_bias", {"9999999": 1}),
                         ("top_logprobs", 1000), ("stop", [""]), ("seed", "x")):
        error = raises(openai.BadRequestError, ask, server, **{field: value})
        assert error.param == field and error.type == "invalid_request_error", error


@check(flags=FAST)
def what_is_not_supported_is_refused_by_name(server):
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    for field, value in (("tools", [tool]), ("response_format", {"type": "json_object"})):
        error = raises(openai.BadRequestError, ask, server, **{field: value})
        assert error.param == field, error
    error = raises(openai.BadRequestError, ask, server, extra_body={"lora_name": "x"})
    assert error.param == "lora_name", error
    error = raises(openai.BadRequestError, ask, server, extra_body={"temprature": 1})
    assert error.param == "temprature", error


@check(flags=FAST)
def an_unknown_model_is_a_not_found_error(server):
    error = raises(openai.NotFoundError, ask, server, model="gpt-x")
    assert error.param == "model" and error.code == "model_not_found"


@check(flags=FAST)
def a_prompt_that_is_too_long_is_refused_with_the_numbers(server):
    error = raises(openai.BadRequestError, complete, server, "x" * 2048, max_tokens=1)
    assert error.code == "context_length_exceeded" and error.param == "prompt"
    assert "2048" in error.message, error.message


KEYED = (*FAST, "--api-key", "first", "--api-key", "second", "--max-requests-per-client", "2")


@check(flags=KEYED)
def a_wrong_key_is_an_authentication_error(server):
    error = raises(openai.AuthenticationError, client(server, "wrong").models.list)
    assert error.code == "invalid_api_key" and "wrong" not in str(error)
    assert client(server, "second").models.list().data
    status, headers, _ = server.post("/v1/chat/completions", {"messages": MESSAGES})
    assert status == 401 and headers["WWW-Authenticate"] == "Bearer"
    # Probes of load balancers bring no key.
    assert server.get("/health") and server.get("/metrics")


@check(flags=KEYED)
def one_request_too_many_of_a_key_is_a_rate_limit_error(server):
    def stream(key):
        return client(server, key).chat.completions.create(
            model=server.model, messages=MESSAGES, max_tokens=1000, stream=True,
            extra_body={"ignore_eos": True})

    running = [stream("first"), stream("first")]
    error = raises(openai.RateLimitError, stream, "first")
    assert error.response.headers["Retry-After"] == "1"
    running.append(stream("second"))
    for one in running:
        next(iter(one))
        one.close()


@check(flags=(*SIM, "--step-time", "20ms", "--num-gpu-blocks-override", "4096",
              "--max-num-seqs", "1", "--max-num-queued-reqs", "2"))
def a_full_queue_is_a_503_with_retry_after_and_not_a_200(server):
    def stream():
        return ask(server, max_tokens=500, stream=True, extra_body={"ignore_eos": True})

    begun = []
    refusals = []
    for _ in range(6):
        try:
            begun.append(stream())
        except openai.InternalServerError as error:
            refusals.append(error)
    assert len(begun) in (2, 3) and len(refusals) == 6 - len(begun), (len(begun), len(refusals))
    assert all(e.status_code == 503 for e in refusals)
    assert all(e.response.headers["Retry-After"] == "1" for e in refusals)
    for one in begun:
        one.close()
    server.becomes_idle()
