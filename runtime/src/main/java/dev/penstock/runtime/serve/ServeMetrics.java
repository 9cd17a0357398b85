package dev.penstock.runtime.serve;

import dev.penstock.runtime.inference.JoiningTexts;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import io.prometheus.metrics.model.snapshots.SummarySnapshot;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** Counts what a server does, and says it in the text that Prometheus reads. Safe to share. */
final class ServeMetrics {
    static final String TYPE = PrometheusTextFormatWriter.CONTENT_TYPE;
    private static final double NANOS = 1e9;

    private record Answered(String path, int status) {}

    private static final class Durations {
        final LongAdder count = new LongAdder();
        final LongAdder nanos = new LongAdder();

        void add(long duration) {
            count.increment();
            nanos.add(duration);
        }
    }

    private final Map<Answered, LongAdder> answers = new ConcurrentHashMap<>();
    private final LongAdder promptTokens = new LongAdder();
    private final LongAdder tokens = new LongAdder();
    private final LongAdder left = new LongAdder();
    private final Durations firstToken = new Durations();
    private final Durations whole = new Durations();

    /** Counts an answer; {@code path} is one of few. */
    void answered(String path, int status) {
        answers.computeIfAbsent(new Answered(path, status), _ -> new LongAdder()).increment();
    }

    void began(int prompt) {
        promptTokens.add(prompt);
    }

    void chose(int count) {
        tokens.add(count);
    }

    void firstTokenAfter(long nanos) {
        firstToken.add(nanos);
    }

    void endedAfter(long nanos) {
        whole.add(nanos);
    }

    void clientLeft() {
        left.increment();
    }

    byte[] text(JoiningTexts texts) throws IOException {
        List<MetricSnapshot> all = new ArrayList<>();
        all.add(requests());
        all.add(counter("prompt_tokens", "tokens of prompts that were taken", promptTokens));
        all.add(counter("generated_tokens", "tokens that were chosen", tokens));
        all.add(counter("cancelled_requests", "requests whose client left", left));
        all.add(gauge("growing_texts", "texts that share the passes", texts.growing()));
        all.add(gauge("waiting_texts", "texts in the queue", texts.waiting()));
        all.add(gauge("most_growing_texts", "room for texts", texts.limits().together()));
        all.add(gauge("cached_tokens", "room of keys and values that is taken", texts.taken()));
        all.add(gauge("most_cached_tokens", "room for keys and values", texts.keptTokens()));
        all.add(gauge("most_waiting_texts", "room in the queue", texts.limits().waiting()));
        all.add(gauge("ready", "1 while the pipeline works", texts.isReady() ? 1 : 0));
        all.add(durations("first_token_seconds", "from request to first token", firstToken));
        all.add(durations("request_seconds", "from request to last token", whole));
        var out = new ByteArrayOutputStream();
        PrometheusTextFormatWriter.create().write(out, new MetricSnapshots(all));
        return out.toByteArray();
    }

    private CounterSnapshot requests() {
        var counter =
                CounterSnapshot.builder()
                        .name("penstock_serve_requests")
                        .help("requests that were answered");
        answers.forEach(
                (answered, count) ->
                        counter.dataPoint(
                                CounterDataPointSnapshot.builder()
                                        .labels(
                                                Labels.of(
                                                        "path",
                                                        answered.path(),
                                                        "status",
                                                        "" + answered.status()))
                                        .value(count.sum())
                                        .build()));
        return counter.build();
    }

    private static CounterSnapshot counter(String name, String help, LongAdder count) {
        return CounterSnapshot.builder()
                .name("penstock_serve_" + name)
                .help(help)
                .dataPoint(CounterDataPointSnapshot.builder().value(count.sum()).build())
                .build();
    }

    private static GaugeSnapshot gauge(String name, String help, double value) {
        return GaugeSnapshot.builder()
                .name("penstock_serve_" + name)
                .help(help)
                .dataPoint(GaugeDataPointSnapshot.builder().value(value).build())
                .build();
    }

    private static SummarySnapshot durations(String name, String help, Durations durations) {
        return SummarySnapshot.builder()
                .name("penstock_serve_" + name)
                .help(help)
                .dataPoint(
                        SummarySnapshot.SummaryDataPointSnapshot.builder()
                                .count(durations.count.sum())
                                .sum(durations.nanos.sum() / NANOS)
                                .build())
                .build();
    }
}
