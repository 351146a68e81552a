#!/usr/bin/env python3
"""A recogniser that hears tones: an ONNX model and its tokens for sherpa-onnx's stock streaming server.

The server loads it through its door for T-one, a streaming CTC model for 8 kHz telephone audio that takes
300 ms at a time and answers ten frames of 30 ms. Ours is not trained but written down: each frame is compared
with one pure tone per word, the loudest tone wins, and where no tone holds most of the energy the frame is
blank. So every word that speak.py plays is heard exactly, and what remains to be measured is the server.

    toy_model.py FOLDER [--work N]      # N products of 512 x 512 per frame set what a frame costs

Needs `onnx` and `numpy`.
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from words import RATE, WORDS, tone_hz

FRAME = RATE * 30 // 1000  # samples
FRAMES = 10  # per step of 300 ms
STATE = 8  # the door wants a state; ours is handed on untouched
WIDTH = 512


class Graph:
    """Collects nodes and constants; every method gives the name of what it made."""

    def __init__(self):
        self.nodes, self.constants, self.made = [], [], 0

    def constant(self, value, dtype=np.float32):
        self.made += 1
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), f"c{self.made}"))
        return f"c{self.made}"

    def node(self, op, *inputs, to=None, **attributes):
        self.made += 1
        name = to or f"n{self.made}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name


def tone_energy(graph, frames):
    """How much of each frame's energy each word's tone holds, and the frame's energy itself."""
    time = np.arange(FRAME) / RATE
    window = np.hanning(FRAME + 1)[:FRAME]
    angles = 2 * np.pi * np.outer(time, [tone_hz(i) for i in range(len(WORDS))])
    parts = []
    for wave in (np.cos(angles), np.sin(angles)):
        part = graph.node("MatMul", frames, graph.constant(wave * window[:, None]))
        parts.append(graph.node("Mul", part, part))
    tones = graph.node("Mul", graph.node("Add", *parts), graph.constant(2 / np.square(window).sum()))
    windowed = graph.node("Mul", frames, graph.constant(window))
    energy = graph.node("ReduceSumSquare", windowed, axes=[2], keepdims=1)
    # Quiet frames hold no tone, however pure their noise.
    floor = graph.node("Add", energy, graph.constant(FRAME * 150.0**2))
    return graph.node("Div", tones, floor), energy


def burden(graph, frames, products):
    """Work that costs time and adds nothing that shows."""
    seeded = np.random.default_rng
    entry = seeded(2).standard_normal((FRAME, WIDTH)) * 1e-4
    square = graph.constant(seeded(1).standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH))
    load = graph.node("MatMul", frames, graph.constant(entry))
    for _ in range(products):
        load = graph.node("Tanh", graph.node("MatMul", load, square))
    total = graph.node("ReduceSum", load, axes=[2], keepdims=1)
    return graph.node("Mul", total, graph.constant(1e-30))


def model(work):
    graph = Graph()
    graph.nodes.append(helper.make_node("Cast", ["x"], ["samples"], to=TensorProto.FLOAT))
    frames = graph.node("Reshape", "samples", graph.constant([-1, FRAMES, FRAME], np.int64))
    share, energy = tone_energy(graph, frames)
    scores = graph.node("Mul", share, graph.constant(24.0))
    if work:
        scores = graph.node("Add", scores, burden(graph, frames, work))
    zero = graph.node("Mul", energy, graph.constant(0.0))
    blank = graph.node("Add", zero, graph.constant(9.0))
    logits = graph.node("Concat", scores, blank, axis=2)
    graph.node("LogSoftmax", logits, to="log_probs", axis=2)
    graph.node("Identity", "state", to="state_next")

    def tensor(name, kind, *shape):
        return helper.make_tensor_value_info(name, kind, list(shape))

    built = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "tones",
            [tensor("x", TensorProto.INT32, "N", FRAMES * FRAME, 1), tensor("state", TensorProto.FLOAT16, "N", STATE)],
            [
                tensor("log_probs", TensorProto.FLOAT, "N", FRAMES, len(WORDS) + 1),
                tensor("state_next", TensorProto.FLOAT16, "N", STATE),
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", 11)],
        ir_version=8,
    )
    told = {"model_type": "t-one", "frame_length_ms": 300, "state_dim": STATE, "sample_rate": RATE, "version": 1}
    for key, value in told.items():
        entry = built.metadata_props.add()
        entry.key, entry.value = key, str(value)
    onnx.checker.check_model(built)
    return built


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--work", type=int, default=0)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model(arguments.work), str(arguments.folder / "model.onnx"))
    # The sign before a word tells the server that it starts with a space.
    lines = [f"\u2581{word} {i}" for i, word in enumerate(WORDS)] + [f"<blk> {len(WORDS)}"]
    (arguments.folder / "tokens.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
