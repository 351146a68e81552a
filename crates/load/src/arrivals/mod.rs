//! Open arrivals: calls come when they come, whether or not the last one has ended.
//!
//! A closed loop slows down when the server does, and so hides the queue that real callers would meet. Here the
//! moments at which calls arrive are fixed beforehand ([`Law`]), and so are their lengths ([`timetable`]); the
//! run ([`arrive`]) keeps to that timetable however slow the server is, and says for every caller when the call
//! was planned, when it was really placed, and what became of it.

mod law;
mod play;
mod timetable;

pub use law::{Law, LawError};
pub use play::{Arrived, Caller, Fate, Lines, Offer, arrive};
pub use timetable::{Arrival, Lengths, Timetable, TimetableError, timetable};
