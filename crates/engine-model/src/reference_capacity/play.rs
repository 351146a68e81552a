//! Plays one tier: callers, balancer, instances, and the figures of the counted calls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Balance, Evidence, Limit, ReferenceError, ReferenceRules, TapeCall};
use crate::model::Model;
use crate::output::{Failure, Heard, Output, OutputKind, Refused};
use crate::params::Params;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// What every playing of a call has in common. Times in ms from the call's start.
struct Script {
    duration_ms: u32,
    /// When to hand audio over: only the chunks that close a window, and those just before where a chunk does not end
    /// on the border. The last entry is the end of the audio.
    steps: Vec<(u32, Heard)>,
    /// Border and planned end of each window with speech.
    owed: Vec<(u32, u32)>,
    /// Planned end of the first window with 300 ms of speech.
    anchor_ms: Option<u32>,
}

impl Script {
    fn new(key: u64, call: &TapeCall, window_ms: u32, chunk_ms: u32) -> Self {
        let duration_ms = call.duration_ms;
        let speech = |from: u32, to: u32| -> u32 {
            call.speech.iter().map(|&(start, end)| end.min(to).saturating_sub(start.max(from))).sum()
        };
        let heard = |total_ms: u32| {
            let digest = (key + 1) << 32 | u64::from(total_ms);
            Heard { total_ms, speech_ms: speech(0, total_ms), digest }
        };
        let planned = |border: u32| border.div_ceil(chunk_ms).saturating_mul(chunk_ms).min(duration_ms);
        let mut steps = Vec::new();
        let mut owed = Vec::new();
        let mut anchor_ms = None;
        let mut from = 0;
        while from < duration_ms {
            let border = from.saturating_add(window_ms).min(duration_ms);
            let at = planned(border);
            if at != border && at > chunk_ms {
                steps.push(at - at.min(chunk_ms));
            }
            steps.push(at);
            let spoken = speech(from, border);
            if spoken > 0 {
                owed.push((border, at));
            }
            if spoken >= 300 && anchor_ms.is_none() {
                anchor_ms = Some(at);
            }
            from = border;
        }
        steps.sort_unstable();
        steps.dedup();
        let steps = steps.into_iter().map(|at| (at, heard(at))).collect();
        Self { duration_ms, steps, owed, anchor_ms }
    }
}

/// One simulated caller and the call it is in.
struct Caller {
    /// Calls begun.
    begun: u64,
    /// Counted calls begun.
    counted: u64,
    script: usize,
    instance: usize,
    start_ns: u64,
    /// Next entry of the script's steps.
    next: usize,
    counts: bool,
    first_text_ns: Option<u64>,
    /// First owed window not covered yet.
    uncovered: usize,
    owed: Union,
}

/// Length of a union of intervals that come in the order of their starts.
#[derive(Default)]
struct Union {
    length_ns: u64,
    until_ns: u64,
}

impl Union {
    fn add(&mut self, from_ns: u64, to_ns: u64) {
        let from_ns = from_ns.max(self.until_ns);
        if to_ns > from_ns {
            self.length_ns += to_ns - from_ns;
            self.until_ns = to_ns;
        }
    }
}

/// The values of one figure over the counted calls, and how many of them may lie above its limit.
struct Figure {
    limit: f64,
    expected: usize,
    values: Vec<f64>,
    above: usize,
}

impl Figure {
    const fn new(limit: f64, expected: usize) -> Self {
        Self { limit, expected, values: Vec::new(), above: 0 }
    }

    fn add(&mut self, value: f64) {
        self.above += usize::from(value > self.limit);
        self.values.push(value);
    }

    /// Whether the percentile is above the limit, whatever the values still to come.
    fn is_lost(&self) -> bool {
        self.above > self.expected - place(self.expected)
    }

    /// Value at place `ceil(n / 2)`.
    fn p50(&mut self) -> Option<f64> {
        self.values.sort_unstable_by(f64::total_cmp);
        self.values.get(self.values.len().div_ceil(2).checked_sub(1)?).copied()
    }

    fn p95(&mut self) -> Option<f64> {
        p95(&mut self.values)
    }
}

/// Place of the 95th percentile among `n` values, counted from 1: the least whole number not below 0.95 n.
const fn place(n: usize) -> usize {
    (n * 95).div_ceil(100)
}

fn p95(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(place(values.len()).checked_sub(1)?).copied()
}

struct Tier<'a> {
    rules: &'a ReferenceRules,
    scripts: Vec<Script>,
    models: Vec<Model>,
    /// When each model next does something by itself; `u64::MAX` is never. Asked anew only of a model that was touched.
    due_ns: Vec<u64>,
    /// Open sessions by instance, and the instance whose turn it is.
    open: Vec<u32>,
    turn: usize,
    callers: Vec<Caller>,
    /// Next instant of each caller: its start, or its next step.
    agenda: BinaryHeap<Reverse<(u64, usize)>>,
    opens_ns: u64,
    calls_each: u64,
    left: usize,
    ttft: Figure,
    rtf: Figure,
    last: Figure,
    broken: Option<Limit>,
}

pub(super) fn play(
    params: &Params,
    instances: u32,
    tape: &[TapeCall],
    rules: &ReferenceRules,
    streams: u32,
    seed: u64,
    give_up_early: bool,
) -> Result<Evidence, ReferenceError> {
    let mut tier = Tier::new(params, instances, tape, rules, streams, seed)?;
    let tape_ms: u64 = tape.iter().map(|call| u64::from(call.duration_ms)).sum();
    let loops = tier.calls_each / u64::try_from(tape.len()).unwrap_or(1);
    let horizon_ns = tier.opens_ns + 4 * (loops + 1) * tape_ms * MS;
    let mut kv: Vec<Vec<f64>> = tier.models.iter().map(|_| Vec::new()).collect();
    let mut sample_ns = u64::from(streams) * u64::from(rules.ramp_ms) * MS;
    let mut said = Vec::new();
    let mut stuck = false;
    let mut complete = true;
    let mut now_ns = 0;
    while tier.left > 0 {
        let Some(next_ns) = tier.next_ns().filter(|&next| next <= horizon_ns) else {
            (stuck, complete) = (true, false);
            break;
        };
        while sample_ns < next_ns {
            for (series, model) in kv.iter_mut().zip(&tier.models) {
                series.push(model.kv_usage());
            }
            sample_ns += SECOND;
        }
        now_ns = next_ns;
        tier.pass(now_ns, &mut said);
        let lost = tier.ttft.is_lost() || tier.rtf.is_lost() || tier.last.is_lost();
        let preempted = tier.models.iter().any(|model| model.preemptions() > 0);
        if tier.broken.is_some() || (give_up_early && (lost || preempted)) {
            complete = false;
            break;
        }
    }
    let preemptions = tier.models.iter().map(Model::preemptions).sum();
    let kv_p95 = kv.iter_mut().filter_map(|series| p95(series)).max_by(f64::total_cmp);
    let lost = [
        (tier.ttft.is_lost(), Limit::Ttft),
        (tier.rtf.is_lost(), Limit::Rtf),
        (tier.last.is_lost(), Limit::Final),
        (stuck, Limit::Stuck),
    ];
    let stopped_by = if preemptions > 0 {
        Some(Limit::Preemption)
    } else if kv_p95.is_some_and(|p95| p95 >= rules.kv) {
        Some(Limit::KvPool)
    } else {
        tier.broken.or_else(|| lost.into_iter().find(|&(is, _)| is).map(|(_, limit)| limit))
    };
    let busiest_ns = tier.models.iter().map(Model::busy_ns).max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "a share to look at")]
    let busy = if now_ns == 0 { 0.0 } else { (busiest_ns as f64 / now_ns as f64).min(1.0) };
    Ok(Evidence {
        streams,
        stopped_by,
        calls: tier.rtf.values.len(),
        ttft_p50_s: if complete { tier.ttft.p50() } else { None },
        rtf_p50: if complete { tier.rtf.p50() } else { None },
        final_p50_s: if complete { tier.last.p50() } else { None },
        ttft_p95_s: if complete { tier.ttft.p95() } else { None },
        rtf_p95: if complete { tier.rtf.p95() } else { None },
        final_p95_s: if complete { tier.last.p95() } else { None },
        kv_p95,
        preemptions,
        busy,
    })
}

impl<'a> Tier<'a> {
    fn new(
        params: &Params,
        instances: u32,
        tape: &[TapeCall],
        rules: &'a ReferenceRules,
        streams: u32,
        seed: u64,
    ) -> Result<Self, ReferenceError> {
        if instances == 0 || tape.is_empty() || rules.chunk_ms == 0 {
            return Err(ReferenceError::Empty(
                "a truth needs an instance, a call on the tape and a chunk longer than 0 ms",
            ));
        }
        if tape.iter().any(|call| call.duration_ms == 0) {
            return Err(ReferenceError::Empty("a call on the tape has no audio"));
        }
        let scripts: Vec<Script> = (0..)
            .zip(tape)
            .map(|(key, call)| Script::new(key, call, params.window_ms.max(1), rules.chunk_ms))
            .collect();
        let models = (0..u64::from(instances))
            .map(|i| Model::new(params.clone(), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i)))
            .collect::<Result<Vec<_>, _>>()?;
        let loops = if streams <= rules.few_streams { rules.loops_few } else { rules.loops };
        let callers: Vec<Caller> = (0..u64::from(streams)).map(|_| Caller::new()).collect();
        let per_stream = scripts.len() * usize::try_from(loops).unwrap_or(1);
        let spoken = scripts.iter().filter(|script| script.anchor_ms.is_some()).count();
        let spoken = spoken * usize::try_from(loops).unwrap_or(1) * callers.len();
        let total = per_stream * callers.len();
        let ramp_ns = u64::from(rules.ramp_ms) * MS;
        let agenda = (0..)
            .zip(&callers)
            .map(|(k, _)| Reverse((ramp_ns * k, usize::try_from(k).unwrap_or(0))))
            .collect();
        Ok(Self {
            open: vec![0; models.len()],
            due_ns: models.iter().map(|model| model.next_event_ns().unwrap_or(u64::MAX)).collect(),
            turn: 0,
            agenda,
            opens_ns: ramp_ns * u64::from(streams) + u64::from(rules.warm_up_ms) * MS,
            calls_each: u64::try_from(per_stream).unwrap_or(u64::MAX),
            left: total,
            ttft: Figure::new(f64::from(rules.ttft_ms) / 1e3, spoken),
            rtf: Figure::new(rules.rtf, total),
            last: Figure::new(f64::from(rules.final_ms) / 1e3, total),
            broken: None,
            rules,
            scripts,
            models,
            callers,
        })
    }

    fn next_ns(&self) -> Option<u64> {
        let agenda = self.agenda.peek().map_or(u64::MAX, |&Reverse((at, _))| at);
        let next = self.due_ns.iter().fold(agenda, |next, &due| next.min(due));
        (next < u64::MAX).then_some(next)
    }

    /// Asks a model anew when it next does something by itself.
    fn ask(&mut self, instance: usize) {
        if let (Some(model), Some(due)) = (self.models.get(instance), self.due_ns.get_mut(instance)) {
            *due = model.next_event_ns().unwrap_or(u64::MAX);
        }
    }

    /// Everything that happens at one instant: first what callers do, then what engines say to it.
    fn pass(&mut self, now_ns: u64, said: &mut Vec<Output>) {
        while let Some(&Reverse((at, k))) = self.agenda.peek()
            && at <= now_ns
        {
            self.agenda.pop();
            self.act(now_ns, k);
        }
        for i in 0..self.models.len() {
            if self.due_ns.get(i).is_some_and(|&due| due <= now_ns)
                && let Some(model) = self.models.get_mut(i)
            {
                model.advance(now_ns, said);
                self.ask(i);
                for output in said.drain(..) {
                    self.hear(&output);
                }
            }
        }
    }

    /// A caller's turn: begin a call, or hand over the next audio of the one it is in.
    fn act(&mut self, now_ns: u64, k: usize) {
        let calls = self.scripts.len();
        let id = u64::try_from(k).unwrap_or(u64::MAX);
        let Some(caller) = self.callers.get_mut(k) else { return };
        if caller.next == usize::MAX {
            caller.script = (k + usize::try_from(caller.begun).unwrap_or(0)) % calls;
            caller.begun += 1;
            caller.counts = now_ns >= self.opens_ns && caller.counted < self.calls_each;
            caller.counted += u64::from(caller.counts);
            caller.instance = match self.rules.balance {
                Balance::RoundRobin => self.turn,
                Balance::LeastConnections => {
                    (0..self.open.len()).min_by_key(|&i| self.open.get(i)).unwrap_or(0)
                }
            };
            self.turn = (self.turn + 1) % self.models.len();
            caller.start_ns = now_ns;
            caller.next = 0;
            caller.first_text_ns = None;
            caller.uncovered = 0;
            caller.owed = Union::default();
            let Some(model) = self.models.get_mut(caller.instance) else { return };
            if let Err(refused) = model.open(now_ns, id) {
                self.broken = Some(if refused == Refused::Down { Limit::Crash } else { Limit::Refusal });
                return;
            }
            if let Some(open) = self.open.get_mut(caller.instance) {
                *open += 1;
            }
        } else if let (Some(script), Some(model)) =
            (self.scripts.get(caller.script), self.models.get_mut(caller.instance))
            && let Some(&(_, heard)) = script.steps.get(caller.next)
        {
            caller.next += 1;
            model.audio(now_ns, id, heard);
            if caller.next == script.steps.len() {
                model.end(now_ns, id);
            }
        }
        if let Some(script) = self.scripts.get(caller.script)
            && let Some(&(at_ms, _)) = script.steps.get(caller.next)
        {
            self.agenda.push(Reverse((caller.start_ns + u64::from(at_ms) * MS, k)));
        }
        let instance = caller.instance;
        self.ask(instance);
    }

    #[expect(clippy::cast_precision_loss, reason = "lengths of hours in ns are exact in f64")]
    fn hear(&mut self, output: &Output) {
        let k = usize::try_from(output.session).unwrap_or(usize::MAX);
        let Some(caller) = self.callers.get_mut(k) else { return };
        let Some(script) = self.scripts.get(caller.script) else { return };
        match output.kind {
            OutputKind::FirstText { .. } => {
                caller.first_text_ns.get_or_insert(output.at_ns);
            }
            OutputKind::Window { covered_ms, .. } => {
                while let Some(&(_, planned_ms)) =
                    script.owed.get(caller.uncovered).filter(|&&(border_ms, _)| border_ms <= covered_ms)
                {
                    caller.owed.add(caller.start_ns + u64::from(planned_ms) * MS, output.at_ns);
                    caller.uncovered += 1;
                }
            }
            OutputKind::Final { .. } => {
                let end_ns = caller.start_ns + u64::from(script.duration_ms) * MS;
                caller.owed.add(end_ns, output.at_ns);
                if caller.counts {
                    self.left -= 1;
                    let seconds = |ns: u64| ns as f64 / 1e9;
                    self.last.add(seconds(output.at_ns - end_ns));
                    self.rtf.add(seconds(caller.owed.length_ns) / (f64::from(script.duration_ms) / 1e3));
                    if let Some(anchor_ms) = script.anchor_ms {
                        let anchor_ns = caller.start_ns + u64::from(anchor_ms) * MS;
                        self.ttft.add(
                            caller.first_text_ns.map_or(f64::INFINITY, |at| seconds(at) - seconds(anchor_ns)),
                        );
                    }
                }
                caller.next = usize::MAX;
                if let Some(open) = self.open.get_mut(caller.instance) {
                    *open -= 1;
                }
                self.agenda.push(Reverse((output.at_ns, k)));
            }
            OutputKind::Failed(Failure::TooLong { .. }) => self.broken = Some(Limit::TooLong),
            OutputKind::Failed(Failure::Crashed) => self.broken = Some(Limit::Crash),
        }
    }
}

impl Caller {
    fn new() -> Self {
        Self {
            begun: 0,
            counted: 0,
            script: 0,
            instance: 0,
            start_ns: 0,
            next: usize::MAX,
            counts: false,
            first_text_ns: None,
            uncovered: 0,
            owed: Union::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_an_order_statistic() {
        let mut values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(p95(&mut values), Some(19.0));
        assert_eq!(p95(&mut values[..1]), Some(1.0));
        assert_eq!(p95(&mut []), None);
        assert_eq!([place(1), place(20), place(21), place(100), place(810)], [1, 19, 20, 95, 770]);
    }

    #[test]
    fn a_figure_is_lost_when_no_value_to_come_can_save_it() {
        let mut figure = Figure::new(1.0, 20);
        figure.add(1.5);
        assert!(!figure.is_lost(), "one of twenty may be above");
        figure.add(1.0);
        assert!(!figure.is_lost(), "the limit itself is within");
        figure.add(1.5);
        assert!(figure.is_lost());
        assert_eq!(figure.p50(), Some(1.5), "the second of 1, 1.5 and 1.5");
    }

    #[test]
    fn intervals_that_overlap_count_once() {
        let mut union = Union::default();
        union.add(10, 20);
        union.add(12, 18);
        union.add(15, 30);
        union.add(40, 41);
        assert_eq!(union.length_ns, 21);
    }

    #[test]
    fn a_script_follows_windows_chunks_and_speech() {
        let call = TapeCall { duration_ms: 5_000, speech: vec![(1_800, 2_100), (4_100, 5_000)] };
        let script = Script::new(0, &call, 2_000, 100);
        assert_eq!(script.steps.iter().map(|s| s.0).collect::<Vec<_>>(), [2_000, 4_000, 5_000]);
        assert_eq!(script.steps[2].1.speech_ms, 1_200);
        assert_eq!(script.owed, [(2_000, 2_000), (4_000, 4_000), (5_000, 5_000)]);
        assert_eq!(script.anchor_ms, Some(5_000), "200 and 100 ms are too little");
        let script = Script::new(0, &call, 2_000, 160);
        assert_eq!(script.steps.iter().map(|s| s.0).collect::<Vec<_>>(), [1_920, 2_080, 4_000, 5_000]);
        assert_eq!(script.owed[0], (2_000, 2_080));
    }
}
