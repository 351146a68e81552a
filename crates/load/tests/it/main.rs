//! Virtual callers against scripted servers, in memory under a paused clock and over real sockets.

#[cfg(test)]
mod arrivals;
#[cfg(test)]
mod backpressure;
#[cfg(test)]
mod counted;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod parity;
#[cfg(test)]
mod server;
#[cfg(test)]
mod wire;
