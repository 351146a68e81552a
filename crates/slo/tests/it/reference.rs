//! The tables of docs/figures.md are those of the catalogue. `UPDATE_DOCS=1 cargo test -p tapedeck-slo --test it reference`
//! writes them anew.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on shall stop")]

use tapedeck_slo::Figure;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures.md");

/// The figures of one table, as the page has it below a heading.
fn table(of: impl Fn(Figure) -> bool) -> String {
    let mut rows = String::from("| figure | unit | definition |\n|---|---|---|\n");
    for spec in Figure::named().filter(|f| of(*f)).map(Figure::spec) {
        rows += &format!("| `{}` | {} | {} |\n", spec.id, spec.unit.symbol(), spec.definition.en);
    }
    rows
}

/// The page with the first table below a heading replaced.
fn with_table(page: &str, heading: &str, rows: &str) -> String {
    let from = page.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let (before, below) = page.split_at(from);
    let begin = below.find("\n| figure |").unwrap() + 1;
    let (text, table) = below.split_at(begin);
    let end = table.find("\n\n").map_or(table.len(), |at| at + 1);
    format!("{before}{text}{rows}{}", &table[end..])
}

#[test]
fn the_reference_lists_every_figure_as_the_catalogue_has_it() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let of_sets = |f: Figure| matches!(f, Figure::Step(_)) && f.has_parts() && !f.only_by_instance();
    let mut made = with_table(&page, "Figures of single calls", &table(Figure::of_calls));
    made = with_table(&made, "Figures of a set of calls", &table(of_sets));
    made = with_table(&made, "Figures of a step", &table(|f| !f.has_parts()));
    made = with_table(&made, "What the engines' pages tell", &table(Figure::only_by_instance));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(PAGE, &made).unwrap();
    }
    assert!(page == made, "docs/figures.md differs from the catalogue: run with UPDATE_DOCS=1");
}
