//! Dialects: what a connection says, how it reads answers, which evidence it gives.
