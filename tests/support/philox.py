"""Philox4x64-10, written from the paper: Salmon et al., SC 2011, section 3.3, with its constants."""

M = 0xD2E7470EE14C6C93, 0xCA5A826395121157
W = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
ROUNDS = 10
WORD = (1 << 64) - 1


def philox(counter, key):
    """The four numbers of 64 bits that a counter and a key give."""
    (a, b, c, d), (k, n) = counter, key
    for _ in range(ROUNDS):
        low, high = M[0] * a, M[1] * c
        a, b, c, d = (high >> 64) ^ b ^ k, high & WORD, (low >> 64) ^ d ^ n, low & WORD
        k, n = (k + W[0]) & WORD, (n + W[1]) & WORD
    return a, b, c, d
