package dev.penstock.runtime.report;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.report.LineChart.Look;
import dev.penstock.runtime.report.LineChart.Series;
import dev.penstock.runtime.report.RunCurves.Curve;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/**
 * Two runs side by side: what they were told differently, what came of it, and how long their
 * losses had the same bits.
 */
public final class RunComparison {
    private final RunDirectory first;
    private final RunDirectory second;
    private final RunCurves a;
    private final RunCurves b;
    private final Map<String, String[]> settings;

    private RunComparison(RunDirectory first, RunDirectory second) throws IOException {
        this.first = first;
        this.second = second;
        this.a = RunCurves.read(first.metrics());
        this.b = RunCurves.read(second.metrics());
        this.settings = differences(settings(first), settings(second));
    }

    /**
     * Reads both runs.
     *
     * @throws IOException if a file cannot be read
     */
    public static RunComparison of(RunDirectory first, RunDirectory second) throws IOException {
        return new RunComparison(first, second);
    }

    /** A figure of both. */
    public record Figure(String what, String first, String second, String change) {}

    /**
     * The answer for programs.
     *
     * @param losses how long they had the same bits
     * @param settings by key, what either was told
     */
    public record Answer(
            String first,
            String second,
            List<Figure> figures,
            String losses,
            Map<String, List<String>> settings) {}

    /** For programs. */
    public Answer answer() {
        Map<String, List<String>> told = new TreeMap<>();
        settings.forEach((key, values) -> told.put(key, List.of(values)));
        return new Answer(
                first.path().toString(), second.path().toString(), figures(), bits(), told);
    }

    /** For the terminal. */
    public String text() {
        StringBuilder text = new StringBuilder();
        text.append("A  %s%nB  %s%n%n".formatted(plain(first.path()), plain(second.path())));
        for (Figure figure : figures()) {
            text.append(
                    "%-28s %16s %16s  %s%n"
                            .formatted(
                                    figure.what(),
                                    figure.first(),
                                    figure.second(),
                                    figure.change()));
        }
        text.append("%n%s%n".formatted(bits()));
        text.append(
                settings.isEmpty() ? "%nthe same configuration%n".formatted() : "%n".formatted());
        settings.forEach(
                (key, values) ->
                        text.append(
                                "%s = %s, %s%n"
                                        .formatted(
                                                plain(key), plain(values[0]), plain(values[1]))));
        return text.toString();
    }

    /** One self-contained file. */
    public String html() {
        StringBuilder page = new StringBuilder(ReportPage.HEAD);
        page.append("<title>Two Penstock runs</title>\n<style>\n")
                .append(Markup.resource("palette.css"))
                .append(Markup.resource("page.css"))
                .append(Markup.resource("chart.css"))
                .append("</style>\n</head>\n<body>\n<main>\n<header><h1>Two runs</h1>\n");
        page.append(
                "<p>A: %s<br>B: %s</p></header>\n<section><h2>Loss</h2><p>%s</p>%s</section>\n"
                        .formatted(
                                Markup.escape(first.path().toString()),
                                Markup.escape(second.path().toString()),
                                Markup.escape(bits()),
                                losses().inline()));
        page.append(
                "<section><h2>Figures</h2><div"
                        + " class=\"scroll\"><table><tr><th></th><th>A</th><th>B</th><th>B to"
                        + " A</th></tr>\n");
        for (Figure figure : figures()) {
            row(page, figure.what(), figure.first(), figure.second(), figure.change());
        }
        page.append(
                "</table></div></section>\n"
                        + "<section><h2>Configuration</h2><div"
                        + " class=\"scroll\"><table><tr><th>key</th><th>A</th><th>B</th></tr>\n");
        settings.forEach((key, values) -> row(page, key, values[0], values[1]));
        return page.append("</table></div></section>\n</main>\n</body>\n</html>\n").toString();
    }

    private LineChart losses() {
        return new LineChart(
                "Losses of both runs over steps",
                "loss (nats per token)",
                List.of(
                        new Series("A", 1, Look.LINE, a.values(Curve.STEP), a.smoothedLoss()),
                        new Series("B", 2, Look.DASHED, b.values(Curve.STEP), b.smoothedLoss()),
                        new Series(
                                "A, validation",
                                1,
                                Look.POINTS,
                                a.values(Curve.EVALUATION_STEP),
                                a.values(Curve.VALIDATION_LOSS)),
                        new Series(
                                "B, validation",
                                2,
                                Look.POINTS,
                                b.values(Curve.EVALUATION_STEP),
                                b.values(Curve.VALIDATION_LOSS))),
                960,
                340);
    }

    private List<Figure> figures() {
        List<Figure> figures = new ArrayList<>();
        add(figures, "steps", RunCurves::steps, "%.0f", false);
        add(figures, "loss, smoothed", RunComparison::lastSmoothed, "%.4f", true);
        add(figures, "validation loss", run -> run.last(Curve.VALIDATION_LOSS), "%.4f", true);
        add(figures, "tokens per second", run -> run.median(Curve.TOKENS_PER_SECOND), "%.0f", true);
        add(figures, "step, ms", run -> run.median(Curve.STEP_MILLIS), "%.1f", true);
        add(figures, "bubble, %", run -> 100 * run.median(Curve.BUBBLE_MEASURED), "%.1f", false);
        add(
                figures,
                "bubble, predicted, %",
                run -> 100 * run.median(Curve.BUBBLE_PREDICTED),
                "%.1f",
                false);
        add(figures, "efficiency, %", run -> 100 * run.median(Curve.EFFICIENCY), "%.1f", false);
        add(
                figures,
                "peak memory of a rank, MiB",
                run -> Arrays.stream(run.peakBytes()).max().orElse(0) / (double) (1 << 20),
                "%.1f",
                true);
        for (Activity activity : Activity.values()) {
            add(
                    figures,
                    activity.label() + ", ms of a rank's step",
                    run ->
                            Arrays.stream(run.meanNanos(activity)).average().orElse(Double.NaN)
                                    / 1e6,
                    "%.1f",
                    false);
        }
        return figures;
    }

    private void add(
            List<Figure> figures,
            String what,
            ToDoubleFunction<RunCurves> figure,
            String format,
            boolean relative) {
        double x = figure.applyAsDouble(a);
        double y = figure.applyAsDouble(b);
        boolean comparable = relative && Double.isFinite(x) && Double.isFinite(y) && x != 0;
        figures.add(
                new Figure(
                        what,
                        Double.isFinite(x) ? Quantities.format(format, x) : "-",
                        Double.isFinite(y) ? Quantities.format(format, y) : "-",
                        comparable ? Quantities.format("%+.1f %%", 100 * (y / x - 1)) : ""));
    }

    private static double lastSmoothed(RunCurves run) {
        double[] smoothed = run.smoothedLoss();
        return smoothed.length == 0 ? Double.NaN : smoothed[smoothed.length - 1];
    }

    private String bits() {
        Map<Double, Double> losses = new TreeMap<>();
        for (int i = 0; i < a.steps(); i++) {
            losses.put(a.values(Curve.STEP)[i], a.values(Curve.LOSS)[i]);
        }
        long common = 0;
        long same = 0;
        for (int i = 0; i < b.steps(); i++) {
            Double other = losses.get(b.values(Curve.STEP)[i]);
            if (other != null) {
                common++;
                boolean equal =
                        Double.doubleToRawLongBits(other)
                                == Double.doubleToRawLongBits(b.values(Curve.LOSS)[i]);
                if (!equal) {
                    return "losses have the same bits for %d steps, and part at step %.0f (%s and %s)"
                            .formatted(
                                    same, b.values(Curve.STEP)[i], other, b.values(Curve.LOSS)[i]);
                }
                same++;
            }
        }
        return common == 0
                ? "they have no step in common"
                : "losses have the same bits in all %d steps that both have".formatted(common);
    }

    private static Map<String, String> settings(RunDirectory run) {
        Config config = ConfigFactory.parseFile(run.resolvedConfiguration().toFile());
        return config.entrySet().stream()
                .collect(
                        Collectors.toMap(
                                Map.Entry::getKey,
                                entry -> String.valueOf(entry.getValue().unwrapped())));
    }

    private static Map<String, String[]> differences(
            Map<String, String> first, Map<String, String> second) {
        Map<String, String[]> differing = new TreeMap<>();
        var keys = new TreeSet<>(first.keySet());
        keys.addAll(second.keySet());
        for (String key : keys) {
            String x = first.getOrDefault(key, "not set");
            String y = second.getOrDefault(key, "not set");
            if (!x.equals(y)) {
                differing.put(key, new String[] {x, y});
            }
        }
        return differing;
    }

    private static void row(StringBuilder page, String... cells) {
        page.append("<tr>");
        for (String cell : cells) {
            page.append("<td>").append(Markup.escape(cell)).append("</td>");
        }
        page.append("</tr>\n");
    }

    /** Names come from outside and must not move the cursor. */
    private static String plain(Object text) {
        return text.toString().replaceAll("\\p{Cntrl}", "?");
    }
}
