"""Writes rendered.json: what transformers' apply_chat_template makes of chats with templates in the
manner of published ones. Run with transformers 5: python record.py"""

import json

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

TEMPLATES = {
    "chatml": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "default-system": """{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "headers": """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}""",
    "instructions": """{%- if messages[0]["role"] == "system" -%}
    {%- set system_message = messages[0]["content"] | trim + "\\n\\n" -%}
    {%- set messages = messages[1:] -%}
{%- else -%}
    {%- set system_message = "" -%}
{%- endif -%}
{{- bos_token -}}
{%- for message in messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception('roles must alternate') -}}
    {%- endif -%}
    {%- if message['role'] == 'user' -%}
        {{- '[INST] ' + (system_message if loop.first else '') + message['content'].strip() + ' [/INST]' -}}
    {%- elif message['role'] == 'assistant' -%}
        {{- ' ' ~ message['content'].strip() ~ eos_token -}}
    {%- else -%}
        {{- raise_exception('unknown role') -}}
    {%- endif -%}
{%- endfor -%}
""",
    "turns": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set offset = 1 %}{% else %}{% set offset = 0 %}{% endif %}
{% for message in messages %}
    {% if message['role'] == 'assistant' %}
        {% set role = 'model' %}
    {% else %}
        {% set role = message['role'] %}
    {% endif %}
{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
    {# a comment on a line of its own #}
{% endfor %}
{% if add_generation_prompt %}
{{'<start_of_turn>model\\n'}}
{% endif %}
""",
    "namespace": """{%- set ns = namespace(system='', count=0) -%}
{%- for m in messages if m['role'] == 'system' -%}{%- set ns.system = m['content'] -%}{%- endfor -%}
{%- for m in messages if m.role != 'system' -%}
{%- set ns.count = ns.count + 1 -%}
{% if ns.system is defined and ns.system and loop.first %}<<{{ ns.system|upper }}>>
{% endif %}{{ ns.count }}/{{ loop.length }} {{ m.role[0] }}{{ m.role[-1] }}: {% generation %}{{ m.content.replace('a', 'A') }}{% endgeneration %}{{ eos_token if loop.last else '\\n' }}
{%- endfor -%}
{%- if add_generation_prompt and messages|length > 0 and messages[-1].role not in ['assistant', 'tool'] %} >>{%- endif -%}
{{ (messages | map_missing) if false else '' }}
""".replace("{{ (messages | map_missing) if false else '' }}\n", ""),
}

CHATS = [
    [{"role": "user", "content": "What is 2 + 2?"}],
    [
        {"role": "user", "content": "  Hello  there\n"},
        {"role": "assistant", "content": "Good day. "},
        {"role": "user", "content": "Say 'ja' in \"German\" {{ twice }}"},
        {"role": "assistant", "content": "ja, ja \u00e4\u4f60"},
    ],
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "a\n\nb"},
        {"role": "assistant", "content": "c"},
    ],
]

tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(WordLevel({"<s>": 0, "</s>": 1, "x": 2}, unk_token="x")),
    bos_token="<s>",
    eos_token="</s>",
)
cases = []
for name, template in TEMPLATES.items():
    for chat in CHATS:
        for prompt in (False, True):
            rendered = tokenizer.apply_chat_template(
                chat, chat_template=template, tokenize=False, add_generation_prompt=prompt
            )
            cases.append(
                {"template": name, "messages": chat, "prompt": prompt, "text": rendered}
            )
with open("rendered.json", "w") as file:
    json.dump({"templates": TEMPLATES, "cases": cases}, file, indent=1)
    file.write("\n")
