package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.Timeline;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Timelines in the trace event format that chrome://tracing and Perfetto read. Panels of one title
 * are one process, such as several steps of a run on one clock; a rank is a thread; an op has its
 * text as its name.
 */
public final class ChromeTrace {
    private ChromeTrace() {}

    /** A JSON document with all panels; the first start of each title is its time 0. */
    public static String json(List<TimelinePanel> panels) {
        Map<String, List<TimelinePanel>> processes = new LinkedHashMap<>();
        panels.forEach(
                panel ->
                        processes
                                .computeIfAbsent(panel.title(), _ -> new ArrayList<>())
                                .add(panel));
        var events = new ArrayList<String>();
        int process = 0;
        for (var entry : processes.entrySet()) {
            process++;
            names(events, process, entry.getKey(), entry.getValue().getFirst().timeline());
            long origin =
                    entry.getValue().stream()
                            .mapToLong(panel -> panel.timeline().startNanos())
                            .min()
                            .orElse(0);
            for (TimelinePanel panel : entry.getValue()) {
                ops(events, process, panel, origin);
            }
        }
        return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                + String.join(",\n", events)
                + "\n]}\n";
    }

    private static void names(List<String> events, int process, String title, Timeline timeline) {
        events.add(name("process_name", process, 0, title));
        for (RankProgram program : timeline.schedule().programs()) {
            events.add(name("thread_name", process, program.rank(), "rank " + program.rank()));
        }
    }

    private static String name(String kind, int process, int thread, String name) {
        return "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}}"
                .formatted(kind, process, thread, escaped(name));
    }

    private static void ops(List<String> events, int process, TimelinePanel panel, long origin) {
        Timeline timeline = panel.timeline();
        // a unit of cost is shown as a millisecond
        double microsPerNano =
                switch (panel.scale()) {
                    case UNITS -> 1e3;
                    case NANOS -> 1e-3;
                };
        for (RankProgram program : timeline.schedule().programs()) {
            for (int i = 0; i < timeline.opsRun(program.rank()); i++) {
                long start = timeline.startNanos(program.rank(), i) - origin;
                long duration = timeline.durationNanos(program.rank(), i);
                events.add(
                        String.format(
                                Locale.ROOT,
                                "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,"
                                        + "\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}}",
                                OpText.print(program.ops().get(i), timeline.schedule().shape()),
                                OpClass.of(program.ops().get(i)).label(),
                                process,
                                program.rank(),
                                start * microsPerNano,
                                duration * microsPerNano,
                                args(program.ops().get(i), timeline.schedule())));
            }
        }
    }

    private static String args(Op op, Schedule schedule) {
        return switch (op) {
            case Op.UnitOp unitOp -> {
                String args =
                        "\"stage\":%d,\"microBatch\":%d"
                                .formatted(op.stage(), unitOp.unit().microBatch());
                yield schedule.shape().slices() > 1
                        ? args + ",\"slice\":" + unitOp.unit().slice()
                        : args;
            }
            case Op.Overlapped _, Op.ParameterOp _, Op.ReduceGradients _ ->
                    "\"stage\":" + op.stage();
        };
    }

    private static String escaped(String text) {
        var escaped = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                escaped.append('\\').append(c);
            } else if (c < ' ') {
                escaped.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                escaped.append(c);
            }
        }
        return escaped.toString();
    }
}
