package dev.penstock.actors.rank;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.ForwardingStage;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.WireCodec;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Both ends of a link against AQ-SGD as the paper has it, on arrays: activations that drift, of
 * rows of which the first are known, in two micro-batches of two sequences in two slices.
 */
class KnownRowsTest {
    private static final int MICRO_BATCHES = 2;
    private static final int SEQUENCES = 2;
    private static final int[] SLICES = {3, 2};
    private static final int TOKENS = 5;
    private static final int WIDTH = 9;
    private static final int ROWS = 7;
    private static final int KNOWN = 5;

    private final Random random = new Random(5);
    private final float[][][] activations = new float[ROWS][TOKENS][WIDTH];
    private final float[][][] known = new float[KNOWN][TOKENS][WIDTH];
    private int[][] drawn = new int[MICRO_BATCHES][SEQUENCES];

    /** Tokens of each slice in the present step. */
    private int[] slices = SLICES;

    private final Device device =
            Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
    private final Kernels kernels = device.kernels();
    private final KnownRows sender = end("sender");
    private final KnownRows receiver = end("receiver");

    /** A stage whose sequences are the rows that were drawn. */
    private final class Drawing extends ForwardingStage {
        Drawing() {
            super(new RecordingStage(0, new ArrayList<>()));
        }

        @Override
        public int boundaryRows(WorkUnit unit) {
            return SEQUENCES * slices[unit.slice()];
        }

        @Override
        public int boundarySequences() {
            return SEQUENCES;
        }

        @Override
        public int boundaryColumns() {
            return WIDTH;
        }

        @Override
        public int dataRow(int microBatch, int sequence) {
            return drawn[microBatch][sequence];
        }
    }

    @AfterEach
    void closeDevice() {
        device.close();
    }

    private KnownRows end(String name) {
        Tensor committed = tensor(name, KNOWN, TOKENS * WIDTH);
        kernels.zero(committed);
        return new KnownRows(
                new Drawing(),
                SLICES.length,
                new NamedTensor(name, List.of(KNOWN, TOKENS * WIDTH), committed),
                tensor(name + " now", MICRO_BATCHES * SEQUENCES, TOKENS * WIDTH),
                tensor(name + " places", MICRO_BATCHES * SEQUENCES, KnownRows.PLACE_COLUMNS),
                kernels);
    }

    private Tensor tensor(String name, int rows, int columns) {
        return device.memory().tensor(name, DType.F32, rows, columns);
    }

    private void drift() {
        for (float[][] row : activations) {
            for (float[] token : row) {
                for (int i = 0; i < WIDTH; i++) {
                    token[i] += 0.1f * (float) random.nextGaussian();
                }
            }
        }
    }

    /** What comes out of four bits: integers from -7 to 7 times the largest magnitude / 7. */
    private static float[] quantised(float[] token) {
        float largest = 0;
        for (float value : token) {
            largest = Math.max(largest, Math.abs(value));
        }
        float scale = largest / 7;
        float[] back = new float[token.length];
        for (int i = 0; i < token.length; i++) {
            back[i] = scale == 0 ? 0 : (int) Math.rint(token[i] / scale) * scale;
        }
        return back;
    }

    /** A token of a row as the receiver has it, from what was known before the step. */
    private float[] received(int row, int token) {
        float[] value = activations[row][token];
        if (row < 0 || row >= KNOWN) {
            return quantised(value);
        }
        float[] before = known[row][token];
        float[] delta = new float[WIDTH];
        for (int i = 0; i < WIDTH; i++) {
            delta[i] = value[i] - before[i];
        }
        float[] after = quantised(delta);
        for (int i = 0; i < WIDTH; i++) {
            after[i] = before[i] + after[i];
        }
        return after;
    }

    /** Sends the step's units and compares what arrives with the paper's. */
    private void step() {
        for (int m = 0; m < MICRO_BATCHES; m++) {
            int first = 0;
            for (int s = 0; s < slices.length; s++) {
                var unit = new WorkUnit(0, m, s);
                Tensor computed = tensor("computed", SEQUENCES * slices[s], WIDTH);
                float[][] expected = new float[computed.rows()][];
                for (int row = 0; row < computed.rows(); row++) {
                    int number = drawn[m][row / slices[s]];
                    int token = first + row % slices[s];
                    set(computed, row, activations[number][token]);
                    expected[row] = received(number, token);
                }

                Tensor arrived = send(computed, unit);

                for (int row = 0; row < computed.rows(); row++) {
                    assertThat(get(arrived, row))
                            .as("%s, row %d", unit, row)
                            .isEqualTo(expected[row]);
                    assertThat(get(computed, row)).isEqualTo(expected[row]);
                }
                first += slices[s];
            }
        }
    }

    private Tensor send(Tensor computed, WorkUnit unit) {
        int words = WireCodec.INT4.words(WIDTH);
        Tensor coded = device.memory().tensor("coded", DType.I32, computed.rows(), words);
        Tensor arrived = tensor("arrived", computed.rows(), WIDTH);
        sender.subtractFrom(computed, unit);
        kernels.encode(WireCodec.INT4, computed, coded);
        kernels.decode(WireCodec.INT4, coded, computed);
        sender.addTo(computed, unit);
        kernels.decode(WireCodec.INT4, coded, arrived);
        receiver.addTo(arrived, unit);
        return arrived;
    }

    /** The paper's m of the rows of the step, in the order of its sequences. */
    private void commit() {
        float[][][] now = new float[KNOWN][][];
        for (int[] microBatch : drawn) {
            for (int row : microBatch) {
                if (row < KNOWN) {
                    now[row] = known[row].clone();
                    for (int token = 0; token < slices[0] + slices[1]; token++) {
                        now[row][token] = received(row, token);
                    }
                }
            }
        }
        for (int row = 0; row < KNOWN; row++) {
            known[row] = now[row] == null ? known[row] : now[row];
        }
        sender.commit();
        receiver.commit();
    }

    private void assertKnown() {
        for (KnownRows end : List.of(sender, receiver)) {
            for (int row = 0; row < KNOWN; row++) {
                float[] all = get(end.named().tensor(), row);
                for (int i = 0; i < all.length; i++) {
                    assertThat(all[i])
                            .as("%s: row %d, element %d", end.named().name(), row, i)
                            .isEqualTo(known[row][i / WIDTH][i % WIDTH]);
                }
            }
        }
    }

    private static void set(Tensor tensor, int row, float[] values) {
        for (int i = 0; i < values.length; i++) {
            tensor.rows(row, 1).segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, values[i]);
        }
    }

    private static float[] get(Tensor tensor, int row) {
        return tensor.rows(row, 1).segment().toArray(ValueLayout.JAVA_FLOAT);
    }

    @Test
    void bothEndsKnowWhatThePaperKnowsWhateverComesWhen() {
        for (int step = 0; step < 12; step++) {
            drift();
            drawn =
                    new int[][] {
                        {random.nextInt(ROWS), random.nextInt(ROWS)},
                        {random.nextInt(ROWS), random.nextInt(ROWS)}
                    };
            slices = step % 4 == 3 ? new int[] {2, 1} : SLICES; // shorter micro-batches
            step();
            if (step % 3 == 1) { // once more, as after a death
                assertKnown();
                step();
            }
            if (step % 5 != 4) { // or left out
                commit();
            }
            assertKnown();
        }
    }

    @Test
    void errorsVanishWhereActivationsStandStill() {
        drift();
        drawn = new int[][] {{0, 1}, {2, 6}};
        float first = 0;
        float last = 0;
        for (int visit = 0; visit < 6; visit++) {
            step();
            commit();
            last = Math.abs(known[0][0][0] - activations[0][0][0]);
            first = visit == 0 ? last : first;
        }

        assertThat(last).isLessThan(first / 1000);
        assertThat(quantised(activations[6][0])).isNotEqualTo(activations[6][0]);
    }
}
