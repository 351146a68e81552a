//! What is predicted before it is measured, so that the two can be held against each other.
//!
//! The prediction itself (a model fitted to the ladder of the run) is brought along by whoever starts a case, as the other
//! seams of the [`World`](crate::World) are.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use tapedeck_answers::Predicted;
use tapedeck_l10n::LocalizedText;
use tapedeck_sizing::whatif::FitNote;

/// What was predicted of several topologies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prediction {
    /// By the topology's name; several where a supposition is open.
    pub of: BTreeMap<String, Vec<Predicted>>,
    /// How good the fit is that they rest on.
    pub notes: Vec<FitNote>,
}

/// Somebody who predicts topologies from what a run directory holds.
pub trait Predictor: Send + Sync + fmt::Debug {
    /// Predicts N* of topologies, given by name and number of instances, the measured one first.
    ///
    /// # Errors
    /// Why nothing can be predicted.
    fn prediction(&self, run: &Path, topologies: &[(String, u32)]) -> Result<Prediction, LocalizedText>;
}
