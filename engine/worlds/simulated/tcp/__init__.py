"""One simulated TCP connection, segment by segment: how late a message is because packets are lost.

What Linux does (net/ipv4/tcp_input.c, tcp_output.c, tcp_recovery.c, tcp_timer.c), as far as it costs time.
One file per mechanism, with the names of the RFCs:
- `congestion.py`: slow start, congestion avoidance (RFC 5681) and proportional rate reduction (RFC 6937).
- `rack.py`: loss detection by the time of sending (RFC 8985, RACK).
- `round_trip.py`: the smoothed round-trip time and the retransmission time-out (RFC 6298).
- `path.py`: the path that loses packets, and the receiver that acknowledges them (RFC 2018, SACK).
- `sender.py`: the sender of one message; tail loss probes (RFC 8985, TLP) and time-outs.
- `connection.py`: what TCP keeps from one message to the next.
"""
