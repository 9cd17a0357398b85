package dev.penstock.runtime.dashboard;

import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** How a run stands, in the text format that Prometheus reads. */
final class PrometheusText {
    static final String TYPE = PrometheusTextFormatWriter.CONTENT_TYPE;
    private static final double MICROS = 1e6;

    private final List<MetricSnapshot> metrics = new ArrayList<>();
    private final Labels run;

    private PrometheusText(String name) {
        run = Labels.of("run", name);
    }

    static byte[] of(RunHead head, StepSeries.Row last, Map<String, Long> happened)
            throws IOException {
        var text = new PrometheusText(head.name());
        text.gauge("step", "committed training steps", head.step());
        text.gauge("last_step", "the step that the run ends with", head.lastStep());
        text.gauge(
                "running", "1 while the run has not ended", head.state().equals("running") ? 1 : 0);
        text.gauge(
                "recovering", "1 while something died and is not back", head.recovering() ? 1 : 0);
        text.gauge("loss", "mean loss of the last step, before its update", head.loss());
        text.gauge("gradient_norm", "global norm before clipping", last.gradientNorm());
        text.gauge("learning_rate", "of the last step", last.learningRate());
        text.gauge("tokens_per_second", "trained, mean of the last steps", head.tokensPerSecond());
        text.gauge("step_seconds", "duration of the last step", last.stepMillis() / 1e3);
        text.gauge(
                "bubble_ratio",
                "share of the ranks' time without forward or backward",
                last.bubbleMeasured());
        text.gauge(
                "predicted_bubble_ratio", "the same of the simulated step", last.bubblePredicted());
        text.perRank(head);
        happened.forEach(text::counter);
        var out = new ByteArrayOutputStream();
        PrometheusTextFormatWriter.create().write(out, new MetricSnapshots(text.metrics));
        return out.toByteArray();
    }

    private void gauge(String name, String help, double value) {
        metrics.add(
                GaugeSnapshot.builder()
                        .name("penstock_" + name)
                        .help(help)
                        .dataPoint(point(run, value))
                        .build());
    }

    private void counter(String kind, long count) {
        metrics.add(
                CounterSnapshot.builder()
                        .name("penstock_" + kind.replaceAll("[^a-z]", "_") + "_events")
                        .help("events of this kind in the run's log")
                        .dataPoint(
                                CounterDataPointSnapshot.builder().labels(run).value(count).build())
                        .build());
    }

    private void perRank(RunHead head) {
        var seconds =
                GaugeSnapshot.builder()
                        .name("penstock_rank_activity_seconds")
                        .help("where the last step went");
        head.rankMicros()
                .forEach(
                        (activity, micros) -> {
                            for (int rank = 0; rank < micros.size(); rank++) {
                                Labels where = rank(rank).merge(Labels.of("activity", activity));
                                seconds.dataPoint(point(where, micros.get(rank) / MICROS));
                            }
                        });
        metrics.add(seconds.build());
        var bytes =
                GaugeSnapshot.builder()
                        .name("penstock_rank_peak_memory_bytes")
                        .help("most device memory ever held");
        for (int rank = 0; rank < head.peakBytes().size(); rank++) {
            bytes.dataPoint(point(rank(rank), head.peakBytes().get(rank)));
        }
        metrics.add(bytes.build());
    }

    private Labels rank(int rank) {
        return run.merge(Labels.of("rank", String.valueOf(rank)));
    }

    private static GaugeDataPointSnapshot point(Labels labels, double value) {
        return GaugeDataPointSnapshot.builder().labels(labels).value(value).build();
    }
}
