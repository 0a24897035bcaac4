"""Packet captures: bytes of a .pcap or .pcapng -> segments -> streams -> remoting commands -> calls -> JSONL records.

Each module is one of these arrows. A capture begins and ends in the middle of talks, and tcpdump may have cut packets
or lost them: what is missing is counted, and never made up.
"""
