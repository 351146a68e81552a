#!/usr/bin/env python3
"""Telephone calls in tones: recordings whose words are known exactly.

    speak.py FOLDER SECONDS:CALLS...      # e.g. 8:4 12:2

Writes 8 kHz mu-law WAV files and `transcripts.tsv`. A word is 180 ms of its tone; some three to twelve of them
make a phrase, and phrases are half a second to two seconds apart. The same arguments give the same bytes.
"""

import math
import pathlib
import random
import struct
import sys

from words import RATE, WORDS, tone_hz

WORD = RATE * 180 // 1000
LOUD = 9_000
LEAD_IN, LEAD_OUT = RATE * 3 // 10, RATE


def mu_law(sample):
    """One byte of G.711 for a 16-bit sample."""
    sign = 0x80 if sample < 0 else 0
    magnitude = min(abs(sample), 32_635) + 132
    exponent = max(magnitude.bit_length() - 8, 0)
    return ~(sign | exponent << 4 | magnitude >> exponent + 3 & 0x0F) & 0xFF


def word(number):
    """A tone that swells and fades within 10 ms, so that it does not click."""
    step = 2 * math.pi * tone_hz(number) / RATE
    edge = RATE // 100
    return [int(LOUD * math.sin(step * k) * min(1, k / edge, (WORD - k) / edge)) for k in range(WORD)]


def call(seconds, seed):
    """Samples and words of one call."""
    choose = random.Random(f"tone call {seed}")
    samples, words = [0] * LEAD_IN, []
    end = seconds * RATE - LEAD_OUT
    while len(samples) + WORD < end:
        for _ in range(choose.randint(3, 12)):
            if len(samples) + WORD >= end:
                break
            number = choose.randrange(len(WORDS))
            words.append(WORDS[number])
            samples += word(number) + [0] * choose.choice((720, 960))
        samples += [0] * choose.randint(RATE // 2, RATE * 2)
    return (samples + [0] * seconds * RATE)[: seconds * RATE], " ".join(words)


def wav(samples):
    data = bytes(map(mu_law, samples))
    form = struct.pack("<HHIIHHH", 7, 1, RATE, RATE, 1, 8, 0)
    chunks = [(b"fmt ", form), (b"fact", struct.pack("<I", len(data))), (b"data", data)]
    body = b"WAVE" + b"".join(name + struct.pack("<I", len(c)) + c + b"\0" * (len(c) % 2) for name, c in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    lines, seed = ["file\ttext"], 0
    for spec in sys.argv[2:]:
        seconds, calls = map(int, spec.split(":"))
        for _ in range(calls):
            seed += 1
            samples, words = call(seconds, seed)
            name = f"tone-{seed:03}.wav"
            (folder / name).write_bytes(wav(samples))
            lines.append(f"{name}\t{words}")
    (folder / "transcripts.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
