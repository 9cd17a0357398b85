package dev.penstock.benchmarks;

import dev.penstock.schedules.simulate.apart.ApartSteps;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * Which bandwidth replicas need that take steps alone, beside the simulated tables of "Scaling Laws
 * for DiLoCo" (arXiv 2503.09799, table 6) and "Streaming DiLoCo" (arXiv 2501.18512, table 4): the
 * least of 50 bandwidths between 0.1 and 1,000 Gbit/s, evenly apart on a logarithmic scale, with
 * which they compute 50, 80, 90, 95 and 99 % of the time. A row says of its five bandwidths how
 * many steps of this scale ours are above those of the paper.
 *
 * <p>Sizes, times of a step and layers are the papers', where they tell them; those of the 10B
 * model of the first paper are taken to be those of the second. One number is fitted, to all rows
 * together: bytes that are sent for a parameter.
 *
 * <p>Arguments: bytes for a parameter, 1.54 unless given.
 */
public final class OuterBenchmark {
    private static final int BANDWIDTHS = 50;
    private static final double NONE_ENOUGH = Double.POSITIVE_INFINITY;
    private static final double[] UTILISATIONS = {0.5, 0.8, 0.9, 0.95, 0.99};

    /** The papers' tables have two bytes for a parameter in mind; this fits best. */
    private static final double FITTED_BYTES = 1.54;

    /**
     * @param stepSeconds that a step computes
     */
    private record Model(String name, double parameters, int layers, double stepSeconds) {}

    /**
     * @param share of the bytes that a parameter usually has
     * @param paper Gbit/s for each utilisation
     */
    private record Row(
            Model model, String method, ApartSteps steps, double share, double... paper) {}

    private static final Model CHINCHILLA = new Model("Chinchilla 10B", 10e9, 48, 0.8);
    private static final Model LLAMA = new Model("Llama3 405B", 405e9, 126, 26);
    private static final Model DEEPSEEK = new Model("DeepSeek-V3 671B", 671e9, 61, 20);
    private static final Model ONE = new Model("1B", 1e9, 24, 0.1);
    private static final Model TEN = new Model("10B", 10e9, 48, 0.8);
    private static final Model HUNDRED = new Model("100B", 100e9, 108, 4.9);

    private OuterBenchmark() {}

    private static Row together(Model model, int every, double... paper) {
        String method = every == 1 ? "every step" : "H = " + every;
        return new Row(model, method, new ApartSteps(model.layers(), every, 0, 1), 1, paper);
    }

    /** Three layers at a time, between turns so many steps that all have them in about 100. */
    private static Row inTurn(
            Model model, String method, int between, int lag, double share, double... paper) {
        var steps = new ApartSteps(model.layers(), between, lag, model.layers() / 3);
        return new Row(model, method, steps, share, paper);
    }

    private static List<Row> scalingLaws() {
        return List.of(
                together(CHINCHILLA, 1, 104.8, 184.2, 222.3, 222.3, 390.7),
                together(CHINCHILLA, 10, 16.0, 49.4, 86.8, 152.6, 222.3),
                together(CHINCHILLA, 50, 3.0, 11.0, 23.3, 41.0, 126.5),
                together(CHINCHILLA, 100, 1.4, 6.2, 13.3, 23.3, 86.8),
                together(CHINCHILLA, 300, 0.5, 2.0, 4.3, 9.1, 41.0),
                together(LLAMA, 1, 126.5, 222.3, 268.3, 323.8, 323.8),
                together(LLAMA, 10, 19.3, 72.0, 126.5, 184.2, 268.3),
                together(LLAMA, 50, 3.6, 13.3, 28.1, 59.6, 184.2),
                together(LLAMA, 100, 2.0, 7.5, 16.0, 33.9, 126.5),
                together(LLAMA, 300, 0.7, 3.0, 6.2, 13.3, 59.6),
                together(DEEPSEEK, 1, 323.8, 569.0, 686.6, 686.6, NONE_ENOUGH),
                together(DEEPSEEK, 10, 49.4, 152.6, 268.3, 390.7, 686.6),
                together(DEEPSEEK, 50, 7.5, 33.9, 72.0, 126.5, 390.7),
                together(DEEPSEEK, 100, 4.3, 16.0, 41.0, 72.0, 268.3),
                together(DEEPSEEK, 300, 1.7, 6.2, 13.3, 28.1, 126.5));
    }

    private static List<Row> streaming() {
        return List.of(
                together(ONE, 1, 86.8, 152.6, 184.2, 222.3, 569.0),
                together(ONE, 100, 1.4, 6.2, 13.3, 23.3, 86.8),
                inTurn(ONE, "in turn", 11, 0, 1, 1.4, 5.2, 9.1, 16.0, 28.1),
                inTurn(ONE, "in turn, lag 1", 11, 1, 1, 1.4, 4.3, 6.2, 9.1, 11.0),
                inTurn(ONE, "in turn, lag 1, 4 bits", 11, 1, 0.25, 0.4, 0.9, 1.7, 2.0, 3.0),
                together(TEN, 1, 104.8, 222.3, 222.3, 268.3, 471.5),
                together(TEN, 100, 1.7, 7.5, 16.0, 33.9, 104.8),
                inTurn(TEN, "in turn", 5, 0, 1, 1.7, 5.2, 9.1, 13.3, 19.3),
                inTurn(TEN, "in turn, lag 1", 5, 1, 1, 1.7, 3.6, 5.2, 6.2, 7.5),
                inTurn(TEN, "in turn, lag 1, 4 bits", 5, 1, 0.25, 0.4, 0.9, 1.4, 1.4, 1.7),
                together(HUNDRED, 1, 184.2, 323.8, 390.7, 390.7, 471.5),
                together(HUNDRED, 100, 3.0, 11.0, 23.3, 49.4, 184.2),
                inTurn(HUNDRED, "in turn", 2, 0, 1, 2.4, 6.2, 9.1, 11.0, 19.3),
                inTurn(HUNDRED, "in turn, lag 1", 2, 1, 1, 1.7, 3.6, 4.3, 5.2, 5.2),
                inTurn(HUNDRED, "in turn, lag 1, 4 bits", 2, 1, 0.25, 0.5, 0.9, 1.1, 1.1, 1.4));
    }

    public static void main(String[] arguments) {
        double bytes = arguments.length == 0 ? FITTED_BYTES : Double.parseDouble(arguments[0]);
        PrintStream out = System.out;
        out.printf(
                Locale.ROOT,
                "Gbit/s to compute a share of the time, %.2f bytes a parameter%n",
                bytes);
        table(out, "Scaling Laws for DiLoCo, table 6", scalingLaws(), bytes);
        table(out, "Streaming DiLoCo, table 4", streaming(), bytes);
        out.println("every bandwidth: ours, and how many of 50 steps it is above the paper's");
    }

    private static void table(PrintStream out, String title, List<Row> rows, double bytes) {
        out.printf("%n%s%n%-17s %-23s", title, "model", "exchange");
        for (double utilisation : UTILISATIONS) {
            out.printf(Locale.ROOT, " %10.0f %%", 100 * utilisation);
        }
        out.println();
        int near = 0;
        int equal = 0;
        for (Row row : rows) {
            out.printf("%-17s %-23s", row.model().name(), row.method());
            int[] ours = ours(row, bytes);
            for (int i = 0; i < ours.length; i++) {
                int above = ours[i] - nearest(row.paper()[i]);
                near += Math.abs(above) <= 1 ? 1 : 0;
                equal += above == 0 ? 1 : 0;
                out.printf(
                        Locale.ROOT,
                        " %7s %4s",
                        ours[i] == BANDWIDTHS ? "1000+" : "%.1f".formatted(gigabits(ours[i])),
                        above == 0 ? "" : "%+d".formatted(above));
            }
            out.println();
        }
        out.printf(
                "%d of %d bandwidths are within one step of the paper's, %d equal them%n",
                near, rows.size() * UTILISATIONS.length, equal);
    }

    /** The least bandwidth for each utilisation; {@value #BANDWIDTHS} if none is enough. */
    private static int[] ours(Row row, double bytes) {
        double bits = row.model().parameters() * bytes * row.share() * Byte.SIZE;
        double[] reached =
                IntStream.range(0, BANDWIDTHS)
                        .mapToDouble(i -> bits / (gigabits(i) * 1e9) / row.model().stepSeconds())
                        .map(row.steps()::utilisation)
                        .toArray();
        return Arrays.stream(UTILISATIONS)
                .mapToInt(
                        wanted ->
                                IntStream.range(0, BANDWIDTHS)
                                        .filter(i -> reached[i] >= wanted)
                                        .findFirst()
                                        .orElse(BANDWIDTHS))
                .toArray();
    }

    private static double gigabits(int index) {
        return Math.pow(10, -1 + 4.0 * index / (BANDWIDTHS - 1));
    }

    private static int nearest(double gigabits) {
        return gigabits == NONE_ENOUGH
                ? BANDWIDTHS
                : (int) Math.round((Math.log10(gigabits) + 1) * (BANDWIDTHS - 1) / 4);
    }
}
