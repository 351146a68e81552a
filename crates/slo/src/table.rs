//! The table of tiers: everything that is known of each, a row a tier.

use tapedeck_record::{CallFigure, Outcome};

use crate::figure::Figure;
use crate::report::{Estimate, Limit, Summary, TierReport};
use crate::step_figure::StepFigure;

/// What fills the cells of a column.
pub type Get<T> = Box<dyn Fn(&TierReport) -> Option<T>>;

/// The cells of a column, by kind; an unknown one is empty, never 0.
pub enum Cells {
    /// Texts.
    Text(Get<String>),
    /// Yes or no.
    Flag(Get<bool>),
    /// Whole numbers.
    Count(Get<u64>),
    /// Numbers.
    Number(Get<f64>),
}

/// A column of the table of tiers.
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Its cells.
    pub cells: Cells,
}

fn text(name: &str, of: fn(&TierReport) -> &str) -> Column {
    Column { name: name.into(), cells: Cells::Text(Box::new(move |r| Some(of(r).to_owned()))) }
}

fn flag(name: &str, of: fn(&TierReport) -> bool) -> Column {
    Column { name: name.into(), cells: Cells::Flag(Box::new(move |r| Some(of(r)))) }
}

fn count(name: &str, of: impl Fn(&TierReport) -> Option<u64> + 'static) -> Column {
    Column { name: name.into(), cells: Cells::Count(Box::new(of)) }
}

fn number(name: &str, of: impl Fn(&TierReport) -> Option<f64> + 'static) -> Column {
    Column { name: name.into(), cells: Cells::Number(Box::new(of)) }
}

/// Value, interval and n.
fn estimate(name: &str, of: impl Fn(&TierReport) -> Option<Estimate> + Copy + 'static) -> [Column; 4] {
    [
        number(name, move |r| of(r).map(|e| e.value)),
        number(&format!("{name}_low"), move |r| of(r)?.low),
        number(&format!("{name}_high"), move |r| of(r)?.high),
        count(&format!("{name}_n"), move |r| of(r).map(|e| e.n)),
    ]
}

/// Figures of single calls with the beginning of their columns, in the order of their bootstrap streams. Of the two
/// finals, the one that the verdict counts by has the columns.
fn summarised() -> impl Iterator<Item = (&'static str, Figure)> {
    let mut figures: Vec<(u64, &str, Figure)> = CallFigure::ALL
        .iter()
        .filter(|f| **f != CallFigure::FinalSpeechS)
        .filter_map(|f| {
            let how = f.spec().summarised?;
            let figure = if *f == CallFigure::FinalS { Figure::Final } else { Figure::Call(*f) };
            Some((how.stream, how.column.unwrap_or(f.spec().id), figure))
        })
        .collect();
    figures.sort_by_key(|(stream, ..)| *stream);
    [(Figure::Ttft.spec().id, Figure::Ttft)].into_iter().chain(figures.into_iter().map(|(_, n, f)| (n, f)))
}

/// The columns of `tiers.csv`, but for the name of the step and whether it was cut short.
#[must_use]
pub fn tier_columns() -> Vec<Column> {
    let mut all = vec![
        count("streams", |r| Some(r.streams.into())),
        text("tape", |r| &r.tape),
        flag("simulated", |r| r.simulated),
        flag("refinement", |r| r.refinement),
        text("verdict", |r| r.verdict.name()),
        flag("point_only", |r| r.point_only),
        text("ttft_basis", |r| r.ttft_basis.name()),
    ];
    all.extend(Limit::ALL.map(|limit| Column {
        name: format!("limit_{}", limit.name()),
        cells: Cells::Text(Box::new(move |r| Some(r.limit(limit).name().to_owned()))),
    }));
    for (name, figure) in summarised() {
        let part = move |of: fn(&Summary) -> f64| move |r: &TierReport| figure.summary(r).map(of);
        all.push(number(&format!("{name}_p50"), part(|s| s.p50.value)));
        all.extend(estimate(&format!("{name}_p95"), move |r| figure.estimate(r)));
        all.push(number(&format!("{name}_max"), part(|s| s.max)));
    }
    for &figure in StepFigure::ALL {
        let Some(name) = figure.spec().column else { continue };
        if figure.has_interval() {
            all.extend(estimate(name, move |r| figure.estimate(r)));
        } else {
            all.push(number(name, move |r| Some(figure.estimate(r)?.value)));
        }
    }
    all.extend([
        count("vram_used_bytes", |r| r.gpu.as_ref()?.vram_used_bytes),
        count("calls_counted", |r| Some(r.calls_counted)),
        count("calls_clean", |r| Some(r.calls_clean)),
        count("delivered_streams", |r| Some(r.delivered_streams.into())),
        count("violations", |r| Some(r.violations)),
        number("age_slope_ms_per_min", |r| r.age_slope_ms_per_min),
        number("window_from_s", |r| Some(r.window_from_s)),
        number("window_to_s", |r| Some(r.window_to_s)),
    ]);
    all.extend(Outcome::ALL.map(|outcome| {
        count(&format!("outcome_{}", outcome.name()), move |r| {
            Some(r.outcomes.get(&outcome).copied().unwrap_or(0))
        })
    }));
    all.push(Column { name: "reasons".into(), cells: Cells::Text(Box::new(|r| Some(r.reasons_text().en))) });
    all
}
