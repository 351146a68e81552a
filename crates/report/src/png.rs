//! Plots as PNG: the SVG files, rasterised with the fonts of this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use resvg::{tiny_skia, usvg};

use crate::output::WriteError;

/// Twice the size of the SVG, so that print and slides stay sharp.
const SCALE: f32 = 2.0;

/// Rasterises plots; fonts are looked up once.
pub(crate) struct Rasteriser {
    options: usvg::Options<'static>,
}

impl Rasteriser {
    pub(crate) fn new() -> Self {
        let mut options = usvg::Options::default();
        Arc::make_mut(&mut options.fontdb).load_system_fonts();
        Self { options }
    }

    /// Writes one plot.
    pub(crate) fn write(&self, svg: &str, path: &Path) -> Result<PathBuf, WriteError> {
        let failed = |why: String| WriteError::io(path, std::io::Error::other(why));
        let tree = usvg::Tree::from_str(svg, &self.options).map_err(|e| failed(e.to_string()))?;
        let size = tree.size().to_int_size().scale_by(SCALE).ok_or_else(|| failed("no size".into()))?;
        let mut pixels =
            tiny_skia::Pixmap::new(size.width(), size.height()).ok_or_else(|| failed("too large".into()))?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        let png = pixels.encode_png().map_err(|e| failed(e.to_string()))?;
        tapedeck_rundir::atomic::write(path, &png)?;
        Ok(path.to_path_buf())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::{BLUE, Mark, Plot};

    #[test]
    fn a_plot_becomes_pixels_that_are_not_all_alike() {
        let tmp = tempfile::tempdir().unwrap();
        let mut plot = Plot::new("t", "x", "y");
        let points = vec![(0.0, 0.0), (1.0, 2.0)];
        plot.marks.push(Mark::Line { points, colour: BLUE, width: 2.0, dash: "", title: String::new() });
        let path = Rasteriser::new().write(&plot.svg(), &tmp.path().join("plot.png")).unwrap();
        let pixels = tiny_skia::Pixmap::load_png(&path).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (960, 600));
        let white = pixels.pixels().iter().filter(|p| p.red() == 255 && p.green() == 255).count();
        assert!(white > 10_000 && white < pixels.pixels().len(), "{white} white pixels");
    }
}
