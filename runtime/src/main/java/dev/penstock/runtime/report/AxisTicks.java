package dev.penstock.runtime.report;

import dev.penstock.runtime.metrics.Quantities;
import java.util.ArrayList;
import java.util.List;

/**
 * Round numbers along an axis.
 *
 * @param values rising, inside the axis's range
 * @param labels one per value, all with the same number of decimals
 */
record AxisTicks(List<Double> values, List<String> labels) {
    AxisTicks {
        values = List.copyOf(values);
        labels = List.copyOf(labels);
    }

    /** Below this share of its values a range has no round numbers of its own. */
    private static final double NARROW = 1e-9;

    /**
     * At most about {@code wanted} ticks at multiples of 1, 2 or 5 times a power of ten; the lower
     * end alone where the range is too narrow for doubles to tell its parts from each other.
     */
    static AxisTicks between(double low, double high, int wanted) {
        if (!(high - low > NARROW * Math.max(Math.abs(low), Math.abs(high)))) {
            return new AxisTicks(List.of(low), List.of(Quantities.format("%.4g", low)));
        }
        double rough = (high - low) / Math.max(1, wanted);
        double power = Math.pow(10, Math.floor(Math.log10(rough)));
        double part = rough / power;
        double distance = power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
        int decimals = (int) Math.max(0, -Math.floor(Math.log10(distance) + 1e-9));
        List<Double> values = new ArrayList<>();
        List<String> labels = new ArrayList<>();
        for (long i = (long) Math.ceil(low / distance - 1e-9);
                i * distance <= high * (1 + 1e-12);
                i++) {
            values.add(i * distance);
            labels.add(label(i * distance, decimals));
        }
        return new AxisTicks(values, labels);
    }

    private static String label(double value, int decimals) {
        if (Math.abs(value) >= 1e9) {
            return Quantities.format("%.3g", value);
        }
        return Math.abs(value) >= 1e4
                ? Quantities.format(value % 1000 == 0 ? "%.0fk" : "%.1fk", value / 1e3)
                : Quantities.format("%." + decimals + "f", value);
    }
}
