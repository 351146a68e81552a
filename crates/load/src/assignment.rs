//! Who plays what.

use std::{sync::Arc, time::Duration};

use crate::prepared::{PreparedCall, PreparedCalls};

/// What one stream plays: calls of prepared calls, over and over.
#[derive(Debug, Clone)]
pub struct Item {
    prepared: Arc<PreparedCalls>,
    order: Option<Arc<[usize]>>,
    first: usize,
    tape: Option<Arc<str>>,
}

impl Item {
    /// The whole prepared calls in its own order, beginning at call `first` mod C.
    #[must_use]
    pub const fn new(prepared: Arc<PreparedCalls>, first: usize) -> Self {
        Self { prepared, order: None, first, tape: None }
    }

    /// The calls of the prepared calls with these indices in this order, instead of all of them. Indices the prepared calls does
    /// not have end the stream when it comes to them.
    #[must_use]
    pub fn in_order(mut self, order: impl Into<Arc<[usize]>>) -> Self {
        self.order = Some(order.into());
        self
    }

    /// Names the tape in the traces: needed where streams play different ones.
    #[must_use]
    pub fn of_tape(mut self, tape: impl Into<Arc<str>>) -> Self {
        self.tape = Some(tape.into());
        self
    }

    pub(crate) const fn prepared(&self) -> &Arc<PreparedCalls> {
        &self.prepared
    }

    pub(crate) fn tape(&self) -> Option<&str> {
        self.tape.as_deref()
    }

    /// Calls until it begins again.
    pub(crate) fn len(&self) -> usize {
        self.order.as_ref().map_or(self.prepared.calls().len(), |order| order.len())
    }

    /// Audio until it begins again.
    fn audio(&self) -> Duration {
        let calls = self.prepared.calls();
        match &self.order {
            None => self.prepared.audio(),
            Some(order) => order.iter().filter_map(|&i| calls.get(i)).map(PreparedCall::audio).sum(),
        }
    }

    /// The stream's `seq`-th call.
    pub(crate) fn call(&self, seq: u32) -> Option<&PreparedCall> {
        let at = self.first.checked_add(usize::try_from(seq).ok()?)?.checked_rem(self.len())?;
        let index = match &self.order {
            Some(order) => *order.get(at)?,
            None => at,
        };
        self.prepared.calls().get(index)
    }
}

/// Which part each stream plays.
#[derive(Debug, Clone)]
pub enum Assignment {
    /// Every stream plays the whole prepared calls; stream k begins at call k mod C.
    All(Arc<PreparedCalls>),
    /// Stream k plays part k mod the number of parts.
    Each(Vec<Item>),
}

impl From<Arc<PreparedCalls>> for Assignment {
    fn from(prepared: Arc<PreparedCalls>) -> Self {
        Self::All(prepared)
    }
}

impl Assignment {
    /// What stream `k` plays; nothing where there is no part at all.
    pub(crate) fn item(&self, k: u32) -> Option<Item> {
        let k = usize::try_from(k).ok()?;
        match self {
            Self::All(prepared) => Some(Item::new(Arc::clone(prepared), k)),
            Self::Each(items) => items.get(k.checked_rem(items.len())?).cloned(),
        }
    }

    /// Calls that count: `loops` times what each of the streams plays.
    #[must_use]
    pub fn counted_calls(&self, streams: u32, loops: u32) -> u64 {
        let calls = (0..streams).filter_map(|k| self.item(k)).map(|item| item.len() as u64);
        calls.sum::<u64>().saturating_mul(loops.into())
    }

    fn prepared_sets(&self) -> Vec<&Arc<PreparedCalls>> {
        match self {
            Self::All(prepared) => vec![prepared],
            Self::Each(items) => items.iter().map(|p| &p.prepared).collect(),
        }
    }

    /// Audio of the longest call that anybody may play.
    #[must_use]
    pub fn longest_call(&self) -> Duration {
        let calls = self.prepared_sets().into_iter().flat_map(|prepared| prepared.calls());
        calls.map(PreparedCall::audio).max().unwrap_or_default()
    }

    /// Audio until the last of the streams has played its whole part once.
    #[must_use]
    pub fn longest_loop(&self, streams: u32) -> Duration {
        let items = (0..streams).filter_map(|k| self.item(k));
        items.map(|item| item.audio()).max().unwrap_or_default()
    }

    /// Largest message of all, bytes.
    pub(crate) fn largest_frame(&self) -> usize {
        self.prepared_sets().into_iter().map(|prepared| prepared.largest_frame()).max().unwrap_or(0)
    }
}
