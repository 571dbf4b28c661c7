use super::*;

#[test]
fn a_small_stretch() {
    let times: Vec<i64> = (10..15).collect();
    let values = [2.0, f64::NAN, -1.0, 7.0, -1.0].map(f64::to_bits);
    let stats = Stats::of(ColumnType::F64, &times, &values);
    assert_eq!((stats.count(), stats.nan_count()), (5, 1));
    assert_eq!((stats.sum(), stats.square_sum()), (7.0, 55.0));
    assert_eq!(stats.min(), Some(((-1.0f64).to_bits(), 12)));
    assert_eq!(stats.max(), Some((7f64.to_bits(), 13)));
    assert_eq!(stats.mean(), Some(1.75));
    assert_eq!(stats.variance(), Some(10.6875));
    assert_eq!(Stats::decode(ColumnType::F64, &stats.to_bytes()), Ok(stats));
    let mut front = Stats::of(ColumnType::F64, &times[..2], &values[..2]);
    front.merge_after(&Stats::of(ColumnType::F64, &times[2..], &values[2..]));
    assert_eq!(front, stats);
}
