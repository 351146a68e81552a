//! The folder of recordings: what lies in it, and which of that could be a call.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::TapeError;

/// Names that sound files go by. A file with another name is looked into, and left alone unless it begins like one.
const SOUND: [&str; 35] = [
    "wav", "wave", "rf64", "bwf", "w64", "mp3", "mp2", "flac", "ogg", "oga", "opus", "gsm", "au", "snd",
    "aif", "aiff", "aifc", "caf", "m4a", "mp4", "aac", "wma", "amr", "awb", "vox", "ul", "al", "ulaw",
    "alaw", "raw", "pcm", "sln", "g722", "g729", "sph",
];
/// Folders below folders deeper than this are not entered.
const MAX_DEPTH: usize = 64;

/// One file of a pool that could be a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolFile {
    /// Path relative to the pool, with `/` between its parts.
    pub path: String,
    /// Where it is.
    pub at: PathBuf,
    /// Size, bytes.
    pub bytes: u64,
    /// Last change, nanoseconds since 1970; 0 where the file system does not tell.
    pub modified_ns: u64,
}

/// What a folder holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// The files that could be recordings, by path.
    pub files: Vec<PoolFile>,
    /// Names that cannot be used, with the reason.
    pub refused: Vec<(String, String)>,
    /// Files that are plainly something else: tables, texts, checksums.
    pub others: usize,
}

/// The folder of a pool by its real path; whatever is no folder is refused.
pub(crate) fn root_of(pool: &Path) -> Result<PathBuf, TapeError> {
    let not_a_pool = || TapeError::NotAPool { path: pool.to_owned() };
    let root = pool.canonicalize().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => not_a_pool(),
        _ => TapeError::io(pool, &e),
    })?;
    if root.is_dir() { Ok(root) } else { Err(not_a_pool()) }
}

impl Pool {
    /// Walks the folder `pool` and everything below it. Hidden files and folders are not looked at; a symbolic
    /// link counts when it leads to a file within the pool.
    ///
    /// # Errors
    /// [`TapeError::NotAPool`] when it is no folder, [`TapeError::Io`] when it cannot be read.
    pub fn list(pool: &Path) -> Result<Self, TapeError> {
        let root = root_of(pool)?;
        let mut found = Self::default();
        let mut folders = vec![(root.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in std::fs::read_dir(&folder).map_err(|e| TapeError::io(&folder, &e))? {
                let entry = entry.map_err(|e| TapeError::io(&folder, &e))?;
                let at = entry.path();
                let kind = entry.file_type().map_err(|e| TapeError::io(&at, &e))?;
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                if kind.is_dir() {
                    if depth < MAX_DEPTH {
                        folders.push((at, depth + 1));
                    } else {
                        found
                            .refused
                            .push((shown(&root, &at), format!("more than {MAX_DEPTH} folders deep")));
                    }
                } else {
                    found.consider(&root, &at, kind.is_symlink());
                }
            }
        }
        found.files.sort_by(|a, b| a.path.cmp(&b.path));
        found.refused.sort();
        Ok(found)
    }

    fn consider(&mut self, root: &Path, at: &Path, link: bool) {
        let mut refuse = |why: &str| self.refused.push((shown(root, at), why.to_owned()));
        if link {
            match at.canonicalize() {
                Err(_) => return refuse("a symbolic link that leads nowhere"),
                Ok(target) if !target.starts_with(root) => {
                    return refuse(
                        "a symbolic link out of the pool; copy the file in, or scan the folder it is in",
                    );
                }
                Ok(target) if target.is_dir() => {
                    return refuse("a symbolic link to a folder is not followed");
                }
                Ok(_) => {}
            }
        }
        let meta = match at.metadata() {
            Ok(meta) => meta,
            Err(e) => return refuse(&e.to_string()),
        };
        if !meta.is_file() {
            return refuse("neither a file nor a folder");
        }
        if !sounds(at) {
            self.others += 1;
            return;
        }
        let Some(path) = relative(root, at) else {
            return refuse("its name is not UTF-8; rename it");
        };
        let modified_ns = meta
            .modified()
            .ok()
            .and_then(|t| t.duration_since(UNIX_EPOCH).ok())
            .and_then(|d| u64::try_from(d.as_nanos()).ok())
            .unwrap_or(0);
        self.files.push(PoolFile { path, at: at.to_owned(), bytes: meta.len(), modified_ns });
    }
}

/// Whether a file is called like a sound file, or begins like one.
fn sounds(at: &Path) -> bool {
    let extension = at.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    if extension.is_some_and(|e| SOUND.contains(&e.as_str())) {
        return true;
    }
    let mut start = [0; 12];
    let Ok(mut file) = File::open(at) else { return false };
    if file.read_exact(&mut start).is_err() {
        return false;
    }
    matches!(
        &start[..4],
        b"RIFF" | b"RF64" | b"BW64" | b"RIFX" | b"fLaC" | b"OggS" | b".snd" | b"#!AM" | b"caff"
    )
}

fn relative(root: &Path, at: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = at
        .strip_prefix(root)
        .ok()?
        .components()
        .map(|c| if let Component::Normal(part) = c { part.to_str() } else { None })
        .collect();
    parts.map(|parts| parts.join("/"))
}

fn shown(root: &Path, at: &Path) -> String {
    at.strip_prefix(root).unwrap_or(at).to_string_lossy().into_owned()
}

/// The file that a path of a manifest means, if it lies within the pool. `Err` says why not.
///
/// The path is foreign input: it must be relative, without `.` or `..`, and no link on the way may lead out.
pub(crate) fn resolve(root: &Path, path: &str) -> Result<PathBuf, String> {
    check_path(path)?;
    let at = root.join(path).canonicalize().map_err(|e| e.to_string())?;
    if !at.starts_with(root) {
        return Err("leads out of the pool through a symbolic link".to_owned());
    }
    Ok(at)
}

/// Whether a path could be one that [`Pool::list`] gave.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    if path.is_empty() || path.contains('\0') || path.len() > 4096 {
        return Err("the path is empty, too long or holds a zero byte".to_owned());
    }
    if path.contains('\\') || path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Err("the path must be relative to the pool, parted by single `/`, without `.`, `..` or `\\`"
            .to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_leave_the_pool() {
        for bad in
            ["", "/etc/passwd", "../x.wav", "a/../../x.wav", "a//b.wav", "./a.wav", "a\\..\\b", "a\0b", "a/"]
        {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
        for good in ["a.wav", "2024/05/a b.wav", "..a.wav", "a/...b"] {
            assert!(check_path(good).is_ok(), "{good:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_pool_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let pool = dir.path().join("pool");
        std::fs::create_dir_all(pool.join("sub")).unwrap();
        std::fs::write(dir.path().join("secret.wav"), "RIFF").unwrap();
        std::fs::write(pool.join("sub/a.wav"), "RIFF").unwrap();
        std::fs::write(pool.join("notes.txt"), "hello").unwrap();
        std::fs::write(pool.join(".hidden.wav"), "RIFF").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret.wav"), pool.join("out.wav")).unwrap();
        std::os::unix::fs::symlink(dir.path(), pool.join("up")).unwrap();
        std::os::unix::fs::symlink("sub/a.wav", pool.join("in.wav")).unwrap();
        let listed = Pool::list(&pool).unwrap();
        assert_eq!(listed.files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["in.wav", "sub/a.wav"]);
        assert_eq!(listed.refused.iter().map(|r| r.0.as_str()).collect::<Vec<_>>(), ["out.wav", "up"]);
        assert_eq!(listed.others, 1);
        let root = pool.canonicalize().unwrap();
        assert!(resolve(&root, "in.wav").is_ok());
        assert!(resolve(&root, "out.wav").unwrap_err().contains("out of the pool"));
        assert!(resolve(&root, "up/secret.wav").unwrap_err().contains("out of the pool"));
    }
}
