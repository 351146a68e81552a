"""Writes the reference tables beside this file, from the definitions, with 60 digits.

python3 -m pip install mpmath==1.4.1 gmpy2
python3 crates/erlang/tests/reference/make.py

Nothing here shares a formula with the Rust code beyond the definitions: Erlang B and Engset are quotients of
sums over the states, summed outwards from the largest term; Erlang A is summed state by state, and its
waits come from mpmath's quadrature and from the series of the incomplete gamma function.
"""

import os
import random

from mpmath import exp, expm1, log, log10, loggamma, mp, mpf, quad

mp.dps = 60
HERE = os.path.dirname(os.path.abspath(__file__))
TINY = mpf(10) ** -45
random.seed(7)


def relative_sum(first, step_down, lowest, step_up, highest):
    """Sum of all terms over the term at `first`; step_x(k) is term(k -/+ 1) / term(k)."""
    total, term, k = mpf(1), mpf(1), first
    while k > lowest:
        term *= step_down(k)
        total += term
        k -= 1
        if term < TINY * total:
            break
    term, k = mpf(1), first
    while k < highest:
        term *= step_up(k)
        total += term
        k += 1
        if term < TINY * total:
            break
    return total


def erlang_b(n, a):
    a = mpf(a)
    peak = min(n, int(a))
    total = relative_sum(peak, lambda k: k / a, 0, lambda k: a / (k + 1), n)
    return exp((n - peak) * log(a) - loggamma(n + 1) + loggamma(peak + 1)) / total


def erlang_c(n, a, b):
    return n * b / (n - mpf(a) * (1 - b))


def engset_time(n, s, alpha):
    alpha = mpf(alpha)
    peak = max(0, min(n, int((s + 1) * alpha / (1 + alpha))))
    total = relative_sum(
        peak,
        lambda k: k / ((s - k + 1) * alpha),
        0,
        lambda k: (s - k) * alpha / (k + 1),
        n,
    )
    binomials = loggamma(peak + 1) + loggamma(s - peak + 1) - loggamma(n + 1) - loggamma(s - n + 1)
    return exp(binomials + (n - peak) * log(alpha)) / total


def retry(n, a, r):
    """Traffic with repeats x, from x (1 - r B(n, x)) = a, by bisection and then secant."""
    a, r = mpf(a), mpf(r)

    def excess(x):
        return x * (1 - r * erlang_b(n, x)) - a

    low, high = a, a
    while excess(high) < 0:
        high *= 2
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    x0, x1, f0, f1 = low, high, excess(low), excess(high)
    for _ in range(40):
        if f1 == f0 or abs(x1 - x0) < mpf(10) ** -40 * x1:
            break
        x0, x1, f0 = x1, x1 - f1 * (x1 - x0) / (f1 - f0), f1
        f1 = excess(x1)
    return x1


def erlang_a(n, a, gamma, tau):
    """Waiting, abandoning, answered within tau service times, still waiting at tau; patience 1 / gamma."""
    a, gamma, tau = mpf(a), mpf(gamma), mpf(tau)
    below = (n / a) / erlang_b(n - 1, a)
    term, waiting, abandoning, j = mpf(1), mpf(1), mpf(0), 0
    while True:
        j += 1
        term *= a / (n + j * gamma)
        waiting += term
        abandoning += j * gamma * term / a
        if a < n + j * gamma and term * (n + j * gamma) < TINY * waiting * (n + j * gamma - a):
            break
    total = below + waiting
    x, y = n / gamma, a / gamma
    # The density of the offered wait v (in patience), scaled so that it integrates to `waiting`.
    peak = max(mpf(0), log(y / x))
    width = 1 / (mp.sqrt(y) + abs(x - y) + 1)

    def cut(v):
        return x * exp(-y * expm1(-v) - x * v)

    end = gamma * tau
    places = sorted({mpf(0), end} | {p for p in (peak + k * width for k in (-8, -2, 0, 2, 8)) if 0 < p < end})
    answered = quad(lambda v: exp(-v) * cut(v), places)
    # The rest is an incomplete gamma function, by its series.
    z = y * exp(-end)
    term, series, k = mpf(1), mpf(1), 0
    while term > TINY * series or z > x + k:
        k += 1
        term *= z / (x + k)
        series += term
    later = exp(y - z - x * end) * series
    return waiting / total, abandoning / total, (below + answered) / total, exp(-end) * later / total


def row(*values):
    return ",".join(v if isinstance(v, str) else mp.nstr(v, 25) if isinstance(v, mpf) else repr(v) for v in values)


def write(name, header, rows):
    with open(os.path.join(HERE, name), "w", encoding="ascii") as out:
        out.write(header + "\n")
        out.writelines(line + "\n" for line in rows)
    print(name, len(rows))


def some_lines(a):
    around = [a * f for f in (0.01, 0.3, 0.7, 0.9, 0.99, 0.999, 1.0, 1.001, 1.01, 1.1, 1.5, 3.0)]
    spread = [a + k * a**0.5 for k in (-20, -5, -2, -1, 0, 1, 2, 5, 10, 20, 36)]
    fixed = [1, 2, 3, 4, 5, 6, 7, 8, 30, 100, 399, 400, 401, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    return sorted({n for n in map(round, around + spread) if 1 <= n <= 10_000_000} | set(fixed))


def b_and_c():
    rows = []
    for a in [1e-9, 1e-6, 1e-3, 0.1, 0.9, 1.0, 2.5, 7.3, 20.0, 99.5, 400.0, 1234.5, 1e4, 123456.7, 1e6]:
        for n in some_lines(a):
            b = erlang_b(n, a)
            c = erlang_c(n, a, b) if a < n else None
            rows.append(row(n, a, b, log10(b), c if c is not None else "", log10(c) if c is not None else ""))
    return rows


def engset():
    rows = []
    for s in (2, 5, 10, 100, 450, 1000, 20_000, 1_000_000, 10_000_000):
        for rho in (1e-6, 0.01, 0.1, 0.25, 0.5, 0.9):
            alpha = float(mpf(rho) / (1 - mpf(rho)))
            mean, spread = s * rho, (s * rho * (1 - rho)) ** 0.5
            wanted = [mean + k * spread for k in (-10, -1, 0, 1, 3, 10, 30)] + [1, 2, s - 1]
            for n in sorted({n for n in map(round, wanted) if 1 <= n <= s - 1}):
                time, call = engset_time(n, s, alpha), engset_time(n, s - 1, alpha)
                rows.append(row(n, s, alpha, time, log10(time), call, log10(call)))
    return rows


def retries():
    rows = []
    for n, a in [(1, 0.3), (1, 0.99), (7, 2.5), (7, 6.9), (30, 25.0), (30, 45.0), (100, 99.0), (1000, 980.0), (100_000, 99_900.0)]:
        for r in (0.0, 0.3, 0.7, 0.99, 1.0):
            if r == 1.0 and a >= n:
                continue
            x = retry(n, a, r)
            rows.append(row(n, a, r, x, erlang_b(n, x)))
    return rows


def impatient():
    rows = []
    for n, a in [(1, 0.1), (1, 3.0), (7, 2.5), (7, 7.0), (7, 12.0), (30, 33.0), (100, 95.0), (100, 140.0), (1000, 1000.0), (20_000, 19_900.0), (1_000_000, 1_000_100.0)]:
        for gamma in (0.02, 0.5, 1.0, 4.0, 60.0):
            if n >= 20_000 and gamma < 0.5:
                continue
            for tau in (0.001, 0.1, 1.0):
                rows.append(row(n, a, gamma, tau, *erlang_a(n, a, gamma, tau)))
    return rows


if __name__ == "__main__":
    write("b_and_c.csv", "lines,traffic,b,log10_b,c,log10_c", b_and_c())
    write("engset.csv", "lines,sources,idle_traffic,time,log10_time,call,log10_call", engset())
    write("retries.csv", "lines,traffic,recall,total_traffic,blocking", retries())
    write("impatient.csv", "lines,traffic,patience_rate,within,waiting,abandoning,answered,still_waiting", impatient())
