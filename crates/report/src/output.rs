//! Files that a report leaves.

use std::path::{Path, PathBuf};

use tapedeck_rundir::{RunDirError, atomic};

use crate::answer::Answer;
use crate::html;
use crate::messages::Lang;
use crate::read::{Run, Step};

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A folder that could not be made, a file that could not be written piece by piece.
    #[error("cannot write {}: {source}; give --out another folder", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A file that could not be replaced.
    #[error(transparent)]
    Replace(#[from] RunDirError),
}

impl WriteError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}

/// Makes a folder with its parents.
pub(crate) fn folder(path: &Path) -> Result<(), WriteError> {
    std::fs::create_dir_all(path).map_err(|e| WriteError::io(path, e))
}

/// What to write.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// The language.
    pub lang: Lang,
    /// Whether recognised texts may be shown.
    pub texts: bool,
    /// Whether plots are written as files too.
    pub plots: bool,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub html: PathBuf,
    /// Plots, SVG and PNG.
    pub plots: Vec<PathBuf>,
}

/// The report as HTML.
#[must_use]
pub fn write_html(run: &Run, answer: &Answer, lang: Lang, texts: bool) -> String {
    html::page(run, answer, lang, &transcripts(run, texts)).html
}

/// Writes the page (`report.html`, `report.zh.html`) and the plots into a folder.
///
/// # Errors
/// What the operating system refused.
pub fn write_report(run: &Run, answer: &Answer, wanted: Wanted, out: &Path) -> Result<Written, WriteError> {
    let page = html::page(run, answer, wanted.lang, &transcripts(run, wanted.texts));
    folder(out)?;
    let name = match wanted.lang {
        Lang::En => "report.html".to_string(),
        lang => format!("report.{}.html", lang.tag()),
    };
    let mut written = Written { html: out.join(name), plots: Vec::new() };
    atomic::write(&written.html, page.html.as_bytes())?;
    if wanted.plots {
        let plots = out.join("plots");
        folder(&plots)?;
        #[cfg(feature = "png")]
        let rasteriser = crate::png::Rasteriser::new();
        for named in &page.plots {
            let suffix =
                if wanted.lang == Lang::En { String::new() } else { format!(".{}", wanted.lang.tag()) };
            let path = plots.join(format!("{}{suffix}.svg", named.name));
            let svg = named.plot.svg();
            atomic::write(&path, svg.as_bytes())?;
            #[cfg(feature = "png")]
            written.plots.push(rasteriser.write(&svg, &path.with_extension("png"))?);
            written.plots.push(path);
        }
    }
    Ok(written)
}

/// Recognised texts, only when asked for and only where the run kept them.
fn transcripts(run: &Run, asked: bool) -> Vec<Vec<String>> {
    if !asked {
        return Vec::new();
    }
    run.steps.iter().flat_map(|step| texts_of(run, step)).take(2000).collect()
}

fn texts_of(run: &Run, step: &Step) -> Vec<Vec<String>> {
    let path = run.path.join(format!("texts-{}.jsonl", step.name));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            let said = value.get("finals_and_tail")?.as_str()?.to_string();
            let number = |key: &str| value.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
            let call = format!("{}/{}: {}", number("stream"), number("seq"), number("call"));
            Some(vec![step.name.clone(), call, said])
        })
        .collect()
}
