package dev.penstock.runtime.report;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.Activity;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import java.io.IOException;
import java.io.Writer;
import java.util.List;

/**
 * Writes measured steps in the Trace Event Format of chrome://tracing and ui.perfetto.dev: a
 * process per run, a thread per rank, an event per op under the name that the schedule gives it.
 * The zero of time is the first step's first op.
 */
final class StepTrace {
    private static final int PROCESS = 1;

    private final String runName;
    private final Schedule schedule;
    private final RankGrid grid;

    StepTrace(String runName, Schedule schedule, RankGrid grid) {
        this.runName = runName;
        this.schedule = schedule;
        this.grid = grid;
    }

    void write(List<StepReport> steps, Writer out) throws IOException {
        try (JsonGenerator json = new JsonFactory().createGenerator(out)) {
            json.writeStartObject();
            json.writeStringField("displayTimeUnit", "ms");
            json.writeArrayFieldStart("traceEvents");
            writeNames(json);
            long origin = origin(steps);
            for (StepReport step : steps) {
                for (RankStep rank : step.ranks()) {
                    writeRank(json, step.step(), rank, origin);
                }
            }
            json.writeEndArray();
            json.writeEndObject();
        }
    }

    private void writeNames(JsonGenerator json) throws IOException {
        writeName(json, "process_name", 0, runName);
        for (int rank = 0; rank < grid.ranks(); rank++) {
            writeName(json, "thread_name", rank, "rank " + rank);
        }
    }

    private void writeRank(JsonGenerator json, long step, RankStep rank, long origin)
            throws IOException {
        List<Op> ops = schedule.program(grid.placeOf(rank.rank()).pipeline()).ops();
        for (int i = 0; i < ops.size(); i++) {
            Op op = ops.get(i);
            begin(
                    json,
                    OpText.print(op, schedule.shape()),
                    Activity.of(op),
                    rank.rank(),
                    rank.opStartNanos()[i] - origin,
                    rank.opEndNanos()[i] - rank.opStartNanos()[i]);
            json.writeNumberField("step", step);
            json.writeNumberField("stage", op.stage());
            if (op instanceof Op.UnitOp unitOp) {
                json.writeNumberField("microBatch", unitOp.unit().microBatch());
                json.writeNumberField("slice", unitOp.unit().slice());
            }
            end(json);
        }
        if (rank.updateEndNanos() > rank.updateStartNanos()) {
            begin(
                    json,
                    "UPDATE",
                    Activity.UPDATE,
                    rank.rank(),
                    rank.updateStartNanos() - origin,
                    rank.updateEndNanos() - rank.updateStartNanos());
            json.writeNumberField("step", step);
            end(json);
        }
    }

    private static void begin(
            JsonGenerator json,
            String name,
            Activity activity,
            int rank,
            long startNanos,
            long durationNanos)
            throws IOException {
        json.writeStartObject();
        json.writeStringField("name", name);
        json.writeStringField("cat", activity.label());
        json.writeStringField("ph", "X");
        json.writeNumberField("pid", PROCESS);
        json.writeNumberField("tid", rank);
        json.writeNumberField("ts", startNanos / 1e3);
        json.writeNumberField("dur", durationNanos / 1e3);
        json.writeObjectFieldStart("args");
    }

    private static void end(JsonGenerator json) throws IOException {
        json.writeEndObject();
        json.writeEndObject();
        json.writeRaw('\n');
    }

    private static void writeName(JsonGenerator json, String kind, int thread, String name)
            throws IOException {
        json.writeStartObject();
        json.writeStringField("name", kind);
        json.writeStringField("ph", "M");
        json.writeNumberField("pid", PROCESS);
        json.writeNumberField("tid", thread);
        json.writeObjectFieldStart("args");
        json.writeStringField("name", name);
        end(json);
    }

    private static long origin(List<StepReport> steps) {
        long origin = Long.MAX_VALUE;
        for (StepReport step : steps) {
            for (RankStep rank : step.ranks()) {
                for (long start : rank.opStartNanos()) {
                    origin = Math.min(origin, start);
                }
            }
        }
        return origin;
    }
}
