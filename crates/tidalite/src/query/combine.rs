//! Figures of a window from figures of its parts: consecutive windows that are stored, and rows.

use crate::types::figure::Figure;
use crate::types::interpolation::Interpolation;

/// The figures of one part of a window; `None` for a figure without a value.
pub(crate) type Part<'p> = &'p dyn Fn(Figure) -> Option<f64>;

/// The sets of figures of the parts from which a figure of the whole follows; any one of them is enough. Empty if it
/// does not follow from figures, such as a percentile.
pub(crate) fn sources(figure: Figure) -> &'static [&'static [Figure]] {
    match figure {
        Figure::Count => &[&[Figure::Count]],
        Figure::Sum => &[&[Figure::Sum], &[Figure::Count, Figure::Mean]],
        Figure::Mean => &[
            &[Figure::Count, Figure::Mean],
            &[Figure::Count, Figure::Sum],
        ],
        Figure::Stddev => &[&[Figure::Count, Figure::Mean, Figure::Stddev]],
        Figure::Min => &[&[Figure::Min]],
        Figure::Max => &[&[Figure::Max]],
        Figure::First => &[&[Figure::First]],
        Figure::Last => &[&[Figure::Last]],
        Figure::Spread => &[&[Figure::Min, Figure::Max]],
        Figure::Delta => &[&[Figure::Delta]],
        Figure::Increase => &[&[Figure::Increase]],
        Figure::Integral(Interpolation::Linear) => &[&[Figure::Integral(Interpolation::Linear)]],
        Figure::Integral(Interpolation::Previous) => {
            &[&[Figure::Integral(Interpolation::Previous)]]
        }
        _ => &[],
    }
}

/// The stored figures from which a figure of the whole can be computed; `None` if they do not suffice.
pub(crate) fn source_among(figure: Figure, stored: &[Figure]) -> Option<&'static [Figure]> {
    let all = |set: &&&[Figure]| set.iter().all(|figure| stored.contains(figure));
    sources(figure).iter().find(all).copied()
}

/// Computes a figure of a window from figures of its consecutive parts, in time order. `from` must be one of the sets
/// that [`sources`] returns for it.
pub(crate) fn combined(figure: Figure, from: &[Figure], parts: &[Part<'_>]) -> Option<f64> {
    let each = |figure: Figure| parts.iter().filter_map(move |part| part(figure));
    let sum = |figure: Figure| each(figure).reduce(|a, b| a + b);
    let has_mean = from.contains(&Figure::Mean);
    // Number and sum of the values of each part.
    let weighted = || {
        parts.iter().filter_map(|part| {
            let count = part(Figure::Count)?;
            let sum = match has_mean {
                true => part(Figure::Mean)? * count,
                false => part(Figure::Sum)?,
            };
            Some((count, sum))
        })
    };
    let mean = || {
        let (count, sum) = weighted().reduce(|a, b| (a.0 + b.0, a.1 + b.1))?;
        (count > 0.0).then(|| sum / count)
    };
    match figure {
        Figure::Min => each(Figure::Min).reduce(f64::min),
        Figure::Max => each(Figure::Max).reduce(f64::max),
        // The value of the first row, which may be null.
        Figure::First => parts.first().and_then(|part| part(Figure::First)),
        Figure::Last => parts.last().and_then(|part| part(Figure::Last)),
        Figure::Spread => {
            let least = each(Figure::Min).reduce(f64::min)?;
            Some(each(Figure::Max).reduce(f64::max)? - least)
        }
        Figure::Sum if has_mean => weighted().map(|(_, sum)| sum).reduce(|a, b| a + b),
        Figure::Mean => mean(),
        Figure::Stddev => {
            let mean = mean()?;
            // The squares of a part around the common mean.
            let squares = parts.iter().filter_map(|part| {
                let (count, own) = (part(Figure::Count)?, part(Figure::Mean)?);
                let stddev = part(Figure::Stddev)?;
                Some((
                    count,
                    count * (stddev * stddev + (own - mean) * (own - mean)),
                ))
            });
            let (count, squares) = squares.reduce(|a, b| (a.0 + b.0, a.1 + b.1))?;
            Some((squares / count).sqrt())
        }
        _ => sum(figure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(values: &[f64]) -> impl Fn(Figure) -> Option<f64> + use<> {
        let values = values.to_vec();
        move |figure| {
            let count = values.len() as f64;
            let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / count);
            match figure {
                Figure::Count => Some(count),
                Figure::Sum => Some(values.iter().sum()),
                Figure::Mean => mean,
                Figure::Stddev => {
                    let mean = mean?;
                    let squares = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
                    Some((squares / count).sqrt())
                }
                Figure::Min => values.iter().copied().reduce(f64::min),
                Figure::Max => values.iter().copied().reduce(f64::max),
                Figure::First => values.first().copied(),
                Figure::Last => values.last().copied(),
                Figure::Spread => {
                    let least = values.iter().copied().reduce(f64::min)?;
                    Some(values.iter().copied().reduce(f64::max)? - least)
                }
                _ => None,
            }
        }
    }

    #[test]
    fn figures_of_parts_give_those_of_the_whole() {
        tidalite_testkit::watch();
        let parts: [&[f64]; 4] = [&[3.0, 5.0, -1.5], &[], &[10.0], &[2.0, 2.5]];
        let whole = figures_of(&parts.concat());
        let own = parts.map(figures_of);
        let own: Vec<Part<'_>> = own.iter().map(|part| part as Part<'_>).collect();
        for figure in [
            Figure::Count,
            Figure::Sum,
            Figure::Mean,
            Figure::Stddev,
            Figure::Min,
            Figure::Max,
            Figure::First,
            Figure::Last,
            Figure::Spread,
        ] {
            for from in sources(figure) {
                let found = combined(figure, from, &own).unwrap_or(f64::NAN);
                let expected = whole(figure).unwrap_or(f64::NAN);
                assert!((found - expected).abs() < 1e-12, "{figure:?} from {from:?}");
            }
        }
        assert_eq!(source_among(Figure::Median, &[Figure::Median]), None);
        assert_eq!(source_among(Figure::Mean, &[Figure::Mean]), None);
    }
}
