"""Benchmarks of the emulation itself: is what it shows true, and how fast is it there?"""
