//! Threads without surprises: small work stays where it is, pools are made once.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Work on fewer values than this is done before another thread has woken up.
const SMALL: usize = 1 << 15;

/// More threads than this only cost memory.
const MOST: usize = 256;

type Pools = Mutex<HashMap<(u32, usize), Arc<ThreadPool>>>;

/// The pool of that many threads. Its key holds the process, for a fork inherits the map but not the threads.
fn pool(threads: usize) -> Option<Arc<ThreadPool>> {
    static POOLS: OnceLock<Pools> = OnceLock::new();
    let mut pools = POOLS.get_or_init(Default::default).lock().ok()?;
    let key = (std::process::id(), threads);
    if let Some(found) = pools.get(&key) {
        return Some(found.clone());
    }
    let made = Arc::new(ThreadPoolBuilder::new().num_threads(threads).build().ok()?);
    pools.insert(key, made.clone());
    Some(made)
}

/// How many threads that many values deserve: one if there are few of them.
pub fn worth(threads: usize, values: usize) -> usize {
    if values < SMALL { 1 } else { threads.clamp(1, MOST) }
}

/// Work by the number of a task, and on a piece. Behind a reference, so that no work needs a copy of the pools' code.
type Work<'a, R> = &'a (dyn Fn(usize) -> R + Sync);
type PieceWork<'a, T, R> = &'a (dyn Fn(usize, &mut [T]) -> R + Sync);

/// Calls `f` with every number of a task on a pool's threads; what it gave, in order.
fn shared<R: Send>(pool: &ThreadPool, tasks: usize, f: Work<R>) -> Vec<R> {
    let found: Vec<Mutex<Option<R>>> = (0..tasks).map(|_| Mutex::new(None)).collect();
    run(pool, tasks, &|i| *held(&found[i]) = Some(f(i)));
    found.into_iter().filter_map(|each| held(&each).take()).collect()
}

fn run(pool: &ThreadPool, tasks: usize, f: Work<()>) {
    pool.install(|| (0..tasks).into_par_iter().with_max_len(1).for_each(f));
}

fn held<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `(0..tasks).map(&f).collect()`, shared among that many threads; the first error in order is the answer.
pub fn try_map<T: Send, E: Send>(
    threads: usize,
    tasks: usize,
    f: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let f: Work<Result<T, E>> = &f;
    match (threads > 1 && tasks > 1).then(|| pool(threads)).flatten() {
        None => (0..tasks).map(f).collect(),
        Some(pool) => shared(&pool, tasks, f).into_iter().collect(),
    }
}

/// [`try_map`] for work that cannot fail.
pub fn map<T: Send>(threads: usize, tasks: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let Ok(found) = try_map(threads, tasks, |i| Ok::<_, Infallible>(f(i)));
    found
}

/// Calls `f(piece number, piece)` for each `size` long piece of `out`; the first error in order is the answer.
pub fn try_pieces<T: Send, R: Send, E: Send>(
    threads: usize,
    out: &mut [T],
    size: usize,
    f: impl Fn(usize, &mut [T]) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let f: PieceWork<T, Result<R, E>> = &f;
    let pieces = out.chunks_mut(size.max(1));
    match (threads > 1 && pieces.len() > 1).then(|| pool(threads)).flatten() {
        None => pieces.enumerate().map(|(i, piece)| f(i, piece)).collect(),
        Some(pool) => {
            let pieces: Vec<_> = pieces.map(Mutex::new).collect();
            shared(&pool, pieces.len(), &|i| f(i, &mut held(&pieces[i]))).into_iter().collect()
        }
    }
}

/// Calls `f` with the number of each and itself; what it gave, in order.
pub fn each<T: Send, R: Send>(
    threads: usize,
    all: &mut [T],
    f: impl Fn(usize, &mut T) -> R + Sync,
) -> Vec<R> {
    let Ok(found) = try_pieces(threads, all, 1, |i, one| {
        Ok::<_, Infallible>(one.iter_mut().map(|one| f(i, one)).collect::<Vec<R>>())
    });
    found.into_iter().flatten().collect()
}

/// Makes a list longer by so many of one value; pages that are new are made by all threads.
pub fn lengthen<T: Clone + Send + Sync>(threads: usize, all: &mut Vec<T>, more: usize, value: T) {
    match (threads > 1 && more >= SMALL).then(|| pool(threads)).flatten() {
        None => all.resize(all.len() + more, value),
        Some(pool) => pool.install(|| all.par_extend(rayon::iter::repeat_n(value, more))),
    }
}
