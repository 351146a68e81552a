//! The tapes: is each of them what was frozen?

use tapedeck_config::TapeConfig;
use tapedeck_tape::{Manifest, verify};

use super::{Check, Patient};

pub(super) fn examine(patient: &Patient<'_>, tell: &mut impl FnMut(Check)) {
    let config = patient.config;
    tell(tape("tape", &config.tape, "tape-a", true));
    for (name, named, spec) in
        [("tape_b", &config.tape_b, "tape-b"), ("labelled", &config.labelled, "labelled")]
    {
        if !named.manifest.as_os_str().is_empty() {
            tell(tape(name, named, spec, false));
        }
    }
}

fn tape(name: &str, named: &TapeConfig, spec: &str, needed: bool) -> Check {
    let freeze = format!("freeze one with `tapectl freeze POOL --spec {spec}` and name it in [{name}]");
    if named.manifest.as_os_str().is_empty() {
        let says = "the config names none";
        return if needed { Check::fail(name, says, freeze) } else { Check::skipped(name, says) };
    }
    let checked = Manifest::read(&named.manifest)
        .and_then(|manifest| verify(&manifest, &named.pool, None).map(|findings| (manifest, findings)));
    match checked {
        Err(error) => {
            Check::fail(name, error.to_string(), format!("mend [{name}] in the config, or {freeze}"))
        }
        Ok((manifest, findings)) => match findings.as_slice() {
            [] => Check::ok(
                name,
                format!(
                    "{}: {} calls, {} s, every byte as it was frozen",
                    manifest.name,
                    manifest.calls.len(),
                    manifest.duration_ms() / 1000
                ),
            ),
            [first, rest @ ..] => {
                let more =
                    if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
                Check::fail(
                    name,
                    format!("{first}{more}"),
                    "put the recordings back as they were, or freeze anew and measure anew",
                )
            }
        },
    }
}
