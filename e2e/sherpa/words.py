"""What the toy recogniser can hear: one word per tone, 100 Hz apart in the telephone band."""

RATE = 8_000  # samples a second

WORDS = (
    "apple bridge candle doctor engine flower garden hammer island jacket kitchen ladder mirror needle orange "
    "pencil quarter rabbit silver table umbrella village window yellow zebra basket corner dinner forest ticket"
).split()


def tone_hz(word):
    """The tone of the word with this number."""
    return 300 + 100 * word
