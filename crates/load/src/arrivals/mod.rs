//! Open arrivals: calls come when they come, whether or not the last one has ended.
//!
//! A closed loop slows down when the server does, and so hides the queue that real callers would meet. Here the
//! moments at which calls arrive are fixed beforehand ([`ArrivalProcess`]), and so are their lengths ([`schedule`]); the
//! run ([`arrive`]) keeps to that schedule however slow the server is, and says for every caller when the call
//! was planned, when it was really placed, and what became of it.

mod play;
mod process;
mod schedule;

pub use play::{Arrived, Caller, Disposition, Offer, Trunks, arrive};
pub use process::{ArrivalProcess, ArrivalProcessError};
pub use schedule::{Arrival, ArrivalSchedule, ArrivalScheduleError, Lengths, schedule};
