//! The card under the built-in engines.

use tapedeck_engine::{EngineHandle, State};
use tapedeck_metrics::gpu::{GpuDevice, GpuError, GpuSource};
use tapedeck_record::GpuReading;
use tapedeck_transport::BoxFuture;

/// Share of a card that serving engines are usually given; the default size follows from it.
const GIVEN: f64 = 0.92;

/// One card that all built-in engines share, as three instances share one GPU in the field.
///
/// It tells memory alone: the model knows no temperature, power or clocks, and what is not known stays empty.
#[derive(Debug)]
pub struct Card {
    engines: Vec<EngineHandle>,
    total_bytes: u64,
}

impl Card {
    /// The card under these engines. Where its size is not given, the engines that run now fill it as far as serving
    /// engines usually do.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes of a card"
    )]
    pub fn new(engines: Vec<EngineHandle>, total_bytes: Option<u64>) -> Self {
        let card = Self { engines, total_bytes: 0 };
        let total_bytes = total_bytes.unwrap_or_else(|| (card.used_bytes() as f64 / GIVEN) as u64);
        Self { total_bytes, ..card }
    }

    /// The same card, with these engines on it instead.
    #[must_use]
    pub fn under(self, engines: Vec<EngineHandle>) -> Self {
        Self { engines, ..self }
    }

    /// Memory that the running engines hold; a process that is gone holds none.
    fn used_bytes(&self) -> u64 {
        let there = self.engines.iter().filter(|engine| engine.state() != State::Gone);
        there.map(|engine| engine.counters().vram_bytes).sum()
    }
}

impl GpuSource for Card {
    fn read(&self) -> BoxFuture<'_, Result<Vec<GpuDevice>, GpuError>> {
        let device = GpuDevice {
            id: "GPU-simulated".into(),
            name: Some("simulated card".into()),
            reading: GpuReading {
                memory_used_bytes: Some(self.used_bytes()),
                memory_total_bytes: Some(self.total_bytes),
                ..GpuReading::default()
            },
            ..GpuDevice::default()
        };
        Box::pin(std::future::ready(Ok(vec![device])))
    }
}
