package dev.penstock.runtime.dashboard;

import dev.penstock.runtime.events.RunEvent.Links.Link;
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
import java.util.function.ToLongFunction;

/** How a run stands, in the text format that Prometheus reads. */
final class PrometheusText {
    static final String TYPE = PrometheusTextFormatWriter.CONTENT_TYPE;
    private static final double MICROS = 1e6;

    private final List<MetricSnapshot> metrics = new ArrayList<>();
    private final Labels run;

    private PrometheusText(String name) {
        run = Labels.of("run", name);
    }

    static byte[] of(
            RunHead head,
            StepSeries.Row last,
            List<Long> plannedBytes,
            RunStatusView standing,
            Map<String, Long> happened)
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
        text.gauge("eta_seconds", "until the last step at the pace of now", head.etaSeconds());
        text.gauge("healthy", "1 while nothing is wrong", head.health().equals("good") ? 1 : 0);
        text.perRank(head);
        text.bytesOfRanks("planned_memory", "device memory as planned", plannedBytes);
        text.bytesOfRanks("peak_memory", "most device memory ever held", head.peakBytes());
        text.leases(standing);
        text.links(standing.links());
        text.checkpoint(standing.checkpoints());
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
    }

    private void bytesOfRanks(String what, String help, List<Long> bytes) {
        var gauge = GaugeSnapshot.builder().name("penstock_rank_" + what + "_bytes").help(help);
        for (int rank = 0; rank < bytes.size(); rank++) {
            gauge.dataPoint(point(rank(rank), bytes.get(rank)));
        }
        metrics.add(gauge.build());
    }

    private void leases(RunStatusView standing) {
        var seconds =
                GaugeSnapshot.builder()
                        .name("penstock_rank_lease_seconds")
                        .help("since the rank was last heard of, when that was last told");
        int known = Math.min(standing.members().size(), standing.leaseMillis().size());
        for (int i = 0; i < known; i++) {
            int rank = standing.members().get(i).rank();
            if (rank >= 0) {
                seconds.dataPoint(point(rank(rank), standing.leaseMillis().get(i) / 1e3));
            }
        }
        metrics.add(seconds.build());
    }

    private void links(List<Link> links) {
        link(links, "sent_bytes", "bytes of tensors sent", Link::sentBytes);
        link(links, "received_bytes", "bytes of tensors received", Link::receivedBytes);
        link(links, "back_pressured_tensors", "met a full log and waited", Link::backPressured);
        link(links, "out_of_credit_tensors", "waited for a free slot", Link::outOfCredit);
        link(links, "resent_frames", "frames sent again", Link::resentFrames);
        link(links, "corrupt_frames", "frames with a wrong checksum", Link::corruptFrames);
    }

    private void link(List<Link> links, String name, String help, ToLongFunction<Link> value) {
        var counter = CounterSnapshot.builder().name("penstock_link_" + name).help(help);
        for (Link link : links) {
            counter.dataPoint(
                    CounterDataPointSnapshot.builder()
                            .labels(
                                    rank(link.rank())
                                            .merge(Labels.of("peer", String.valueOf(link.peer()))))
                            .value(value.applyAsLong(link))
                            .build());
        }
        metrics.add(counter.build());
    }

    private void checkpoint(List<RunStatusView.Checkpoint> checkpoints) {
        if (!checkpoints.isEmpty()) {
            RunStatusView.Checkpoint last = checkpoints.getLast();
            gauge("checkpoint_step", "of the newest checkpoint", last.step());
            gauge("checkpoint_bytes", "size of the newest checkpoint", last.bytes());
            gauge("checkpoint_seconds", "taken by the newest checkpoint", last.micros() / MICROS);
            gauge(
                    "checkpoint_verified",
                    "1 once the newest checkpoint was read back whole",
                    last.verified().equals("whole") ? 1 : 0);
        }
    }

    private Labels rank(int rank) {
        return run.merge(Labels.of("rank", String.valueOf(rank)));
    }

    private static GaugeDataPointSnapshot point(Labels labels, double value) {
        return GaugeDataPointSnapshot.builder().labels(labels).value(value).build();
    }
}
