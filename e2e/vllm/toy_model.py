#!/usr/bin/env python3
"""A model folder that vLLM takes for Qwen3-ASR, small enough for two cores.

There are no weights in it: vLLM makes random ones (`--load-format dummy`). So the text is nonsense and never ends
before its limit, while everything around it is genuine: scheduler, KV cache, metrics, sockets, errors.

    toy_model.py FOLDER        # needs `tokenizers`, which comes with vLLM
    toy_model.py FOLDER text   # a plain chat model instead, taken for Qwen3
    toy_model.py FOLDER marks  # with weights that say one sentence, in the form of the real model, whatever they hear
"""

import itertools
import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

HIDDEN, LAYERS, HEAD = 128, 2, 64
LONGEST = 4096
MARKS = {
    "end": "<|endoftext|>",
    "turn": "<|im_start|>",
    "stop": "<|im_end|>",
    "audio_from": "<|audio_start|>",
    "audio_to": "<|audio_end|>",
    "audio": "<|audio_pad|>",
    "text": "<asr_text>",
}
# Enough for the words of the template and a few merges; random weights do not care.
SENTENCES = [
    "system user assistant",
    "language English language Chinese language German language None",
    "could you tell me when the next train leaves for the coast",
    "the number you have dialled is not in use",
]


def tokenizer(folder):
    """Trains the smallest byte-level tokenizer there is; gives the number of each mark."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        SENTENCES * 4,
        trainers.BpeTrainer(vocab_size=500, min_frequency=2, show_progress=False, initial_alphabet=alphabet),
    )
    # The mark before the text stays in what is decoded, as it does with the real model.
    made.add_tokens([AddedToken(mark, special=name != "text", normalized=False) for name, mark in MARKS.items()])
    made.save(str(folder / "tokenizer.json"))
    numbers = {name: made.token_to_id(mark) for name, mark in MARKS.items()}
    numbers["user"] = made.encode("user").ids[0]
    return numbers, -(-made.get_vocab_size(with_added_tokens=True) // 64) * 64


TEMPLATE = """\
{%- for m in messages -%}
<|im_start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content -%}
{%- if part.type == 'text' -%}{{ part.text }}{%- else -%}<|audio_start|><|audio_pad|><|audio_end|>{%- endif -%}
{%- endfor %}{% endif %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}
"""


def plain(writing, number):
    """The same text stack as a chat model that hears nothing."""
    writing = {key: value for key, value in writing.items() if key != "rope_scaling"}
    return writing | {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "torch_dtype": "bfloat16",
        "eos_token_id": number["stop"],
        "pad_token_id": number["end"],
    }


def said(folder):
    """The tokens of what the weights of `marks` say, in their order, after the last one of every prompt."""
    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = made.encode(f"\nlanguage English{MARKS['text']}{SENTENCES[-1]}{MARKS['stop']}").ids
    assert len(set(tokens)) == len(tokens), "a token that comes twice has two that follow it"
    return tokens


def weights(folder, hearing, writing):
    """Weights by which each token is followed by the next of `said`: no layer adds anything, a token's embedding is a
    dimension of its own, and what reads the last state takes that dimension for the token that follows.
    """
    import torch
    from safetensors.torch import save_file

    tokens = said(folder)
    words, hidden, wide = writing["vocab_size"], writing["hidden_size"], writing["intermediate_size"]
    heads = writing["num_attention_heads"] * writing["head_dim"]
    embed, read = torch.zeros(words, hidden), torch.zeros(words, hidden)
    for place, (token, following) in enumerate(itertools.pairwise(tokens)):
        embed[token, place] = read[following, place] = 1.0
    made = {"thinker.model.embed_tokens.weight": embed, "thinker.lm_head.weight": read}
    made["thinker.model.norm.weight"] = torch.ones(hidden)
    shapes = {
        "self_attn.q_proj": (heads, hidden),
        "self_attn.k_proj": (heads, hidden),
        "self_attn.v_proj": (heads, hidden),
        "self_attn.o_proj": (hidden, heads),
        "mlp.gate_proj": (wide, hidden),
        "mlp.up_proj": (wide, hidden),
        "mlp.down_proj": (hidden, wide),
        "self_attn.q_norm": (writing["head_dim"],),
        "self_attn.k_norm": (writing["head_dim"],),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    for layer in range(writing["num_hidden_layers"]):
        for name, shape in shapes.items():
            fill = torch.ones if "norm" in name else torch.zeros
            made[f"thinker.model.layers.{layer}.{name}.weight"] = fill(shape)
    small, inner, narrow = hearing["d_model"], hearing["encoder_ffn_dim"], hearing["downsample_hidden_size"]
    square = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"]
    shapes = {"conv2d1": (narrow, 1, 3, 3), "conv2d2": (narrow, narrow, 3, 3), "conv2d3": (narrow, narrow, 3, 3)}
    shapes |= {"ln_post": (small,), "proj1": (small, small), "proj2": (hidden, small)}
    for layer in range(hearing["encoder_layers"]):
        here = {name: (small, small) for name in square}
        here |= {"self_attn_layer_norm": (small,), "final_layer_norm": (small,)}
        here |= {"fc1": (inner, small), "fc2": (small, inner)}
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in here.items()}
    for name, shape in shapes.items():
        made[f"thinker.audio_tower.{name}.weight"] = torch.zeros(shape)
        made[f"thinker.audio_tower.{name}.bias"] = torch.zeros(shape[0])
    made["thinker.audio_tower.conv_out.weight"] = torch.zeros(small, narrow * (hearing["num_mel_bins"] // 8))
    save_file({name: tensor.to(torch.bfloat16) for name, tensor in made.items()}, folder / "model.safetensors")
    # Less the prompt's own: what each answer has.
    (folder / "answer_tokens").write_text(f"{len(tokens) - 1}\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    number, words = tokenizer(folder)
    names = {"audio_token": "audio", "audio_bos_token": "audio_from", "audio_eos_token": "audio_to"}
    names = {key: MARKS[mark] for key, mark in names.items()}
    hearing = {
        "model_type": "qwen3_asr_audio_encoder",
        "num_mel_bins": 128,
        "d_model": 64,
        "encoder_layers": 1,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 128,
        "activation_function": "gelu",
        "max_source_positions": 1500,
        "n_window": 50,
        "n_window_infer": 800,
        "conv_chunksize": 500,
        "downsample_hidden_size": 16,
        "output_dim": HIDDEN,
    }
    writing = {
        "model_type": "qwen3_asr_text",
        "vocab_size": words,
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN * 2,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HIDDEN // HEAD,
        "num_key_value_heads": HIDDEN // HEAD,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": LONGEST,
        "rope_theta": 1e6,
        "tie_word_embeddings": True,
        "rope_scaling": {"rope_type": "default", "mrope_section": [12, 10, 10], "mrope_interleaved": True, "interleaved": True},
    }
    files = {
        "config.json": {
            "architectures": ["Qwen3ASRForConditionalGeneration"],
            "model_type": "qwen3_asr",
            "torch_dtype": "bfloat16",
            "support_languages": ["English", "Chinese", "German"],
            "thinker_config": {
                "model_type": "qwen3_asr",
                "audio_token_id": number["audio"],
                "audio_start_token_id": number["audio_from"],
                "audio_end_token_id": number["audio_to"],
                "user_token_id": number["user"],
                "audio_config": hearing,
                "text_config": writing,
            },
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": LONGEST,
            "clean_up_tokenization_spaces": False,
            "eos_token": MARKS["stop"],
            "pad_token": MARKS["end"],
            "extra_special_tokens": names,
            **names,
        },
        "preprocessor_config.json": {
            "processor_class": "Qwen3ASRProcessor",
            "feature_extractor_type": "WhisperFeatureExtractor",
            "feature_size": 128,
            "sampling_rate": 16_000,
            "hop_length": 160,
            "n_fft": 400,
            "chunk_length": 30,
            "n_samples": 480_000,
            "nb_max_frames": 3_000,
            "padding_side": "right",
            "padding_value": 0.0,
            "dither": 0.0,
            "return_attention_mask": True,
        },
        "generation_config.json": {
            "do_sample": False,
            "pad_token_id": number["end"],
            "eos_token_id": [number["stop"], number["end"]],
        },
    }
    if sys.argv[2:] == ["text"]:
        files["config.json"] = plain(writing, number)
        del files["preprocessor_config.json"]
        del files["tokenizer_config.json"]["extra_special_tokens"]
        # A request can then ask for an end of its own accord, which random weights would hardly find.
        (folder / "stop_token").write_text(f"{number['stop']}\n")
    if sys.argv[2:] == ["marks"]:
        writing["tie_word_embeddings"] = False
        weights(folder, hearing, writing)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")
    (folder / "chat_template.jinja").write_text(TEMPLATE)


if __name__ == "__main__":
    main()
