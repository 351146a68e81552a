//! What a card has to give: a KV pool for each instance, and the calls it holds.

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{StaticText, localized};

use crate::error::{SizingError, count, not_negative, positive, share};
use crate::units::{GB, PLAN_GB};

/// A card, and what every instance on it takes before the first call. Gigabytes are 10^9 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Memory of the card, GB.
    pub memory_gb: f64,
    /// Weights of the model, GB, in every instance.
    pub weights_gb: f64,
    /// Context, graphs and activations of an instance, GB: about 2 until it is measured (`tape-sizing calibrate`).
    pub overhead_gb: f64,
}

impl Card {
    /// An A40 of 48 GB with Qwen3-ASR-0.6B: 1.8 GB of weights, 2 GB of overhead (an estimate).
    #[must_use]
    pub const fn a40_qwen3_asr_0_6b() -> Self {
        Self { memory_gb: 48.0, weights_gb: 1.8, overhead_gb: 2.0 }
    }

    /// Checks every figure.
    ///
    /// # Errors
    /// The first that is negative, not a number or absurd; weights that are larger than the card.
    pub fn check(&self) -> Result<(), SizingError> {
        positive(StaticText::new("memory of the card (GB)", "显卡显存（GB）"), self.memory_gb, 1e6)?;
        positive(StaticText::new("weights (GB)", "权重（GB）"), self.weights_gb, 1e6)?;
        not_negative(
            StaticText::new("overhead of an instance (GB)", "每实例开销（GB）"),
            self.overhead_gb,
            1e6,
        )?;
        if self.weights_gb + self.overhead_gb >= self.memory_gb {
            return Err(SizingError::Inconsistent(localized!(
                "weights and overhead ({} GB) leave nothing of a card of {} GB; give a larger card or a smaller model",
                "权重与开销（{} GB）占满了 {} GB 的显卡；请用更大的卡或更小的模型",
                self.weights_gb + self.overhead_gb,
                self.memory_gb
            )));
        }
        Ok(())
    }
}

/// How cards are cut into instances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Cards.
    pub cards: u32,
    /// Instances on each card.
    pub instances: u32,
    /// Share of the card's memory that one instance may take (vLLM's `gpu_memory_utilization`).
    pub share: f64,
}

impl Topology {
    /// A card whose share `all` is divided evenly among instances.
    #[must_use]
    pub fn split(all: f64, instances: u32) -> Self {
        Self { cards: 1, instances, share: all / f64::from(instances.max(1)) }
    }

    /// Instances on all cards.
    #[must_use]
    pub const fn all_instances(&self) -> u32 {
        self.cards.saturating_mul(self.instances)
    }

    /// Checks that the instances of a card fit it.
    ///
    /// # Errors
    /// No card, no instance, a share that is none, or shares that add up to more than the card.
    pub fn check(&self) -> Result<(), SizingError> {
        count(StaticText::new("cards", "显卡数"), self.cards)?;
        let instances = count(StaticText::new("instances", "实例数"), self.instances)?;
        positive(StaticText::new("cards", "显卡数"), f64::from(self.cards), 10_000.0)?;
        positive(StaticText::new("instances", "实例数"), instances, 1_000.0)?;
        let taken =
            share(StaticText::new("share of the card for one instance", "单实例占显卡的比例"), self.share)?
                * instances;
        if taken > 1.0 + 1e-9 {
            return Err(SizingError::Inconsistent(localized!(
                "{self}: {} instances of {} take {taken:.2} of the card; all shares together must not exceed 1",
                "{self}：{} 个实例各占 {}，共占显卡 {taken:.2}；比例之和不得超过 1",
                self.instances,
                self.share
            )));
        }
        Ok(())
    }

    /// KV pool of one instance, GB; below 0 where weights and overhead alone do not fit.
    ///
    /// # Errors
    /// As [`Topology::check`] and [`Card::check`].
    pub fn pool_gb(&self, card: &Card) -> Result<f64, SizingError> {
        self.check()?;
        card.check()?;
        Ok(self.share * card.memory_gb - card.weights_gb - card.overhead_gb)
    }
}

impl std::fmt::Display for Topology {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.cards != 1 {
            write!(f, "{}*", self.cards)?;
        }
        let share = format!("{:.4}", self.share);
        let share = share.trim_end_matches('0');
        let shown = if share.len() < 4 { format!("{:.2}", self.share) } else { share.to_owned() };
        write!(f, "{}x{shown}", self.instances)
    }
}

impl std::str::FromStr for Topology {
    type Err = SizingError;

    /// `3x0.30` = three instances with 0.30 of the card each; `2*3x0.30` = the same on each of two cards.
    fn from_str(text: &str) -> Result<Self, SizingError> {
        let wrong = || SizingError::Unknown {
            what: StaticText::new("topology", "拓扑"),
            given: text.to_owned(),
            known: StaticText::new(
                "INSTANCESxSHARE, such as 3x0.30, or CARDS*INSTANCESxSHARE, such as 2*1x0.92",
                "实例数x比例，例如 3x0.30；或 卡数*实例数x比例，例如 2*1x0.92",
            ),
        };
        let (cards, rest) = text.split_once('*').unwrap_or(("1", text));
        let (instances, share) = rest.split_once(['x', 'X']).ok_or_else(wrong)?;
        let topology = Self {
            cards: cards.trim().parse().map_err(|_| wrong())?,
            instances: instances.trim().parse().map_err(|_| wrong())?,
            share: share.trim().parse().map_err(|_| wrong())?,
        };
        topology.check()?;
        Ok(topology)
    }
}

/// What one topology has to give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SupplyRow {
    /// The topology.
    pub topology: Topology,
    /// KV pool of one instance, GB; empty where weights and overhead alone do not fit.
    pub pool_gb: Option<f64>,
    /// KV pools of all instances, GB.
    pub pool_all_gb: Option<f64>,
    /// Calls at their peak that one pool holds, in true bytes.
    pub calls_each: u64,
    /// The same as the plan counts, whose call is 2.4 % smaller because its "GB" is a million KiB.
    pub calls_each_plan: u64,
    /// Calls at their peak on all instances, in true bytes.
    pub calls_all: u64,
}

/// What a topology has to give to calls that need `call_bytes` each at their peak.
///
/// # Errors
/// As [`Topology::pool_gb`], or a call that needs nothing.
pub fn supply(card: &Card, topology: Topology, call_bytes: f64) -> Result<SupplyRow, SizingError> {
    let call_bytes =
        positive(StaticText::new("memory of a call (bytes)", "单通显存（字节）"), call_bytes, 1e18)?;
    let pool = topology.pool_gb(card)?;
    let pool_gb = (pool > 0.0).then_some(pool);
    let calls = |unit: f64| whole(pool.max(0.0) * unit / call_bytes);
    let calls_each = calls(GB);
    Ok(SupplyRow {
        topology,
        pool_gb,
        pool_all_gb: pool_gb.map(|each| each * f64::from(topology.all_instances())),
        calls_each,
        calls_each_plan: calls(PLAN_GB),
        calls_all: calls_each.saturating_mul(u64::from(topology.all_instances())),
    })
}

/// The whole part of a number that is not below 0, with a hair's grace for products that fall just short.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped; the fraction is meant to go"
)]
pub(crate) fn whole(x: f64) -> u64 {
    (x + 1e-9).floor().clamp(0.0, 1e15) as u64
}
