//! Teletraffic: Erlang B and C, Engset, Erlang A, and their inverses.
