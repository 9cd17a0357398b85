package dev.penstock.runtime.report;

import java.util.List;

/** The values that an axis spans; never empty. */
record AxisRange(double low, double high) {
    /** Of all finite values, wider by {@code margin} of its length at both ends. */
    static AxisRange of(List<double[]> values, double margin) {
        double low = Double.POSITIVE_INFINITY;
        double high = Double.NEGATIVE_INFINITY;
        for (double[] some : values) {
            for (double value : some) {
                if (Double.isFinite(value)) {
                    low = Math.min(low, value);
                    high = Math.max(high, value);
                }
            }
        }
        if (low > high) {
            return new AxisRange(0, 1);
        }
        if (high - low <= 1e-9 * Math.max(1, Math.abs(high))) {
            double around = Math.max(0.5, 0.05 * Math.abs(high)); // 1e30 - 0.5 is 1e30
            return new AxisRange(low - around, high + around);
        }
        double more = margin * (high - low);
        return new AxisRange(low - more, high + more);
    }

    double share(double value) {
        return (value - low) / (high - low);
    }
}
