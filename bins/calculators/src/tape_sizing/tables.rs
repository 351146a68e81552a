//! Memory of calls and tapes, supply of cards, number of instances.

use clap::Args;
use serde::Serialize;
use serde_json::json;
use tapedeck_record::ExitCode;
use tapedeck_sizing::kv::{self, CallKv};
use tapedeck_sizing::units::{mb, mib, plan_mb};
use tapedeck_sizing::{Need, SizingPlan, Topology, how_many, supply as supply_of};

use super::lengths::Lengths;
use super::output::{Answer, figure, row};
use super::topologies;
use tapedeck_cli::Failure;
use tapedeck_cli::usage;

/// Lengths of single calls.
#[derive(Debug, Clone, Args)]
pub struct CallLengths {
    /// Call lengths, seconds, parted by commas
    #[arg(
        long,
        value_name = "SECONDS",
        value_delimiter = ',',
        default_value = "30,60,180,300,600",
        allow_negative_numbers = true
    )]
    pub call_s: Vec<f64>,
}

/// How a card is cut.
#[derive(Debug, Clone, Args)]
pub struct SupplyArgs {
    /// Numbers of instances among which --share is divided evenly
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,3,4",
        conflicts_with = "topology"
    )]
    pub split: Vec<u32>,
    /// Topologies instead: INSTANCESxSHARE or CARDS*INSTANCESxSHARE, parted by commas
    #[arg(long, value_name = "TOPOLOGY", value_delimiter = ',')]
    pub topology: Vec<String>,
    /// Lengths of the calls that fill it, seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_delimiter = ',',
        default_value = "300,600",
        allow_negative_numbers = true
    )]
    pub call_s: Vec<f64>,
}

/// What is asked of one card.
#[derive(Debug, Clone, Args)]
pub struct InstancesArgs {
    /// Calls at once
    #[arg(long)]
    pub calls: u32,
    /// Length of the calls, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, allow_negative_numbers = true)]
    pub call_s: f64,
    /// Calls that one instance carries within the latency limits: a measured N* / instances
    #[arg(long, value_name = "CALLS", allow_negative_numbers = true)]
    pub latency_calls: Option<f64>,
}

/// Bytes of a token, in a sentence too.
fn token(plan: &SizingPlan) -> Result<(u64, String), Failure> {
    let a = plan.architecture().map_err(usage)?;
    let bytes = a.kv_bytes_per_token().map_err(usage)?;
    let sentence = format!(
        "A token costs 2 x {} layers x {} KV heads x {} x {} bytes ({}) = {bytes} bytes.",
        a.layers,
        a.kv_heads,
        a.head_dim,
        a.dtype.bytes(),
        a.dtype.name()
    );
    Ok((bytes, sentence))
}

pub(super) fn kv(plan: &SizingPlan, args: &CallLengths) -> Result<Answer, Failure> {
    let (bytes, sentence) = token(plan)?;
    let session = plan.session().map_err(usage)?;
    let calls: Vec<CallKv> = args
        .call_s
        .iter()
        .map(|&call_s| kv::call(&session, bytes, call_s).map_err(usage))
        .collect::<Result<_, _>>()?;
    let bound = plan.max_model_len.map(|length| session.longest_s(length).map_err(usage)).transpose()?;
    let mut rows =
        vec![row(["call s", "tokens", "peak MB", "peak MiB", "plan \"MB\"", "mean MB", "at most MB"])];
    for call in &calls {
        rows.push(vec![
            format!("{}", call.tokens.call_s),
            figure(Some(call.tokens.peak), 0),
            figure(Some(mb(call.peak_bytes)), 1),
            figure(Some(mib(call.peak_bytes)), 1),
            figure(Some(plan_mb(call.peak_bytes)), 1),
            figure(Some(mb(call.mean_bytes)), 1),
            figure(Some(mb(call.most_bytes)), 1),
        ]);
    }
    let mut answer = Answer::new(&json!({
        "token_bytes": bytes, "session": session, "calls": calls, "length_bound": bound,
    }))
    .line(sentence)
    .line(format!(
        "Session `{}` ({}): {} audio and {} text tokens a second.",
        plan.session,
        session.model.name(),
        session.audio_tokens_per_s,
        session.text_tokens_per_s
    ))
    .table(rows)
    .line("peak: at the end of the call. mean: over the time of the call. at most: if every window says all it may.")
    .line("plan \"MB\": KiB / 1000, the unit of the load-test plan; MB: 10^6 bytes.");
    if calls.iter().any(|call| call.tokens.mean_is_bound) {
        answer = answer.line(
            "The mean is an upper bound: give --answer-s, the time for which a request holds its tokens.",
        );
    }
    if let Some(bound) = bound {
        answer = answer.line(format!(
            "max_model_len {}: a session that is kept outgrows it after {:.0} s, and must stay below {:.0} s if every window may say all it can. On vLLM's realtime endpoint going beyond ends the engine, not only the call.",
            bound.max_model_len, bound.expected_s, bound.safe_s
        ));
    }
    Ok(answer)
}

#[derive(Serialize)]
struct TapeRow {
    name: String,
    #[serde(flatten)]
    kv: kv::TapeKv,
}

pub(super) fn tape(plan: &SizingPlan, lengths: &Lengths) -> Result<Answer, Failure> {
    let (bytes, sentence) = token(plan)?;
    let session = plan.session().map_err(usage)?;
    let mut tapes = Vec::new();
    for (name, calls) in lengths.tapes()? {
        tapes.push(TapeRow { name, kv: kv::tape(&session, bytes, &calls).map_err(usage)? });
    }
    let mut rows = vec![row([
        "tape",
        "calls",
        "audio s",
        "largest peak MB",
        "mean of peaks MB",
        "plan \"MB\"",
        "mean MB",
    ])];
    for tape in &tapes {
        rows.push(vec![
            tape.name.clone(),
            tape.kv.calls.to_string(),
            figure(Some(tape.kv.audio_s), 1),
            figure(Some(mb(tape.kv.peak_bytes)), 1),
            figure(Some(mb(tape.kv.mean_of_peaks_bytes)), 1),
            figure(Some(plan_mb(tape.kv.mean_of_peaks_bytes)), 1),
            figure(Some(mb(tape.kv.mean_bytes)), 1),
        ]);
    }
    let bound = if tapes.iter().any(|tape| tape.kv.mean_is_bound) {
        " (an upper bound: give --answer-s)"
    } else {
        ""
    };
    Ok(Answer::new(&json!({ "token_bytes": bytes, "session": session, "tapes": tapes }))
        .line(sentence)
        .table(rows)
        .line("mean of peaks: every call's peak weighted by its length, the plan's \"mean\"; no stream holds as much for long.")
        .line(format!("mean: what a stream holds on average over time{bound}.")))
}

pub(super) fn supply(plan: &SizingPlan, args: &SupplyArgs) -> Result<Answer, Failure> {
    let (bytes, sentence) = token(plan)?;
    let (session, card) = (plan.session().map_err(usage)?, plan.card().map_err(usage)?);
    let cut = if args.topology.is_empty() {
        if args.split.contains(&0) {
            return Err(Failure::Usage("--split 0: give at least one instance".into()));
        }
        args.split.iter().map(|&n| Topology::split(plan.share, n)).collect()
    } else {
        topologies(&args.topology)?
    };
    let calls: Vec<CallKv> = args
        .call_s
        .iter()
        .map(|&call_s| kv::call(&session, bytes, call_s).map_err(usage))
        .collect::<Result<_, _>>()?;
    let mut head = row(["topology", "pool GB", "all GB"]);
    for call in &calls {
        head.push(format!("calls of {} s", call.tokens.call_s));
        head.push("as plan".into());
        head.push("in all".into());
    }
    let mut rows = vec![head];
    let mut values = Vec::new();
    for topology in cut {
        let mut cells = Vec::new();
        for call in &calls {
            let given = supply_of(&card, topology, call.peak_bytes).map_err(usage)?;
            if cells.is_empty() {
                cells = vec![topology.to_string(), figure(given.pool_gb, 2), figure(given.pool_all_gb, 2)];
            }
            cells.extend([given.calls_each, given.calls_each_plan, given.calls_all].map(|n| n.to_string()));
            values.push(
                json!({ "call_s": call.tokens.call_s, "call_bytes": call.peak_bytes, "supply": given }),
            );
        }
        rows.push(cells);
    }
    Ok(Answer::new(&json!({ "token_bytes": bytes, "card": card, "rows": values }))
        .line(sentence)
        .line(format!(
            "A card of {} GB; every instance takes {} GB of weights and {} GB of overhead first.",
            card.memory_gb, card.weights_gb, card.overhead_gb
        ))
        .table(rows)
        .line("pool: KV pool of one instance; calls: at their peak in one pool; as plan: with the plan's \"GB\" of a million KiB.")
        .line("The overhead is an estimate until `tape-sizing calibrate` has seen the card."))
}

pub(super) fn instances(plan: &SizingPlan, args: &InstancesArgs) -> Result<Answer, Failure> {
    let (bytes, sentence) = token(plan)?;
    let (session, card) = (plan.session().map_err(usage)?, plan.card().map_err(usage)?);
    let call = kv::call(&session, bytes, args.call_s).map_err(usage)?;
    let need = Need {
        calls: args.calls,
        call_bytes: call.peak_bytes,
        share: plan.share,
        latency_calls: args.latency_calls,
    };
    let answer = how_many(&card, &need).map_err(usage)?;
    // No pool is large enough, or the three exclude each other.
    let no = answer.by_kv.is_none() || (answer.by_latency.is_some() && answer.all.is_none());
    Ok(Answer::new(&json!({ "card": card, "need": need, "answer": answer }))
        .line(sentence)
        .line(format!(
            "{} calls of {} s at once need {:.2} GB of KV at their peak, on one card of {} GB of which {} may be taken.",
            args.calls,
            args.call_s,
            f64::from(args.calls) * call.peak_bytes / 1e9,
            card.memory_gb,
            plan.share
        ))
        .lines(answer.sentences.clone())
        .code(if no { ExitCode::No } else { ExitCode::Ok }))
}
