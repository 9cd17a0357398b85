package dev.penstock.runtime.model.layers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StepShapes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How much is dropped, and that every place, step and row has a mask of its own. */
class StreamDropoutTest {
    private static final int CONTEXT = 256;
    private static final int WIDTH = 384;
    private static final double SHARE = 0.2;

    private final ModelShape shape = ModelShape.gpt2(37, CONTEXT, WIDTH, 1, 3, true);
    private final GptSettings settings =
            TinyRuns.settings(shape, 1, new BatchShape(1, 1, List.of(CONTEXT), 16));

    /** Ones after dropout. */
    private float[] dropped(ShardShape part, long step, String place) {
        Device device =
                Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
        try (device;
                StageScopes scopes = StageScopes.of(settings, device.memory(), "dropout")) {
            DropoutKeys keys =
                    DropoutKeys.allocate(scopes.scratch(), new StepShapes(settings.batch()));
            keys.begin(true);
            keys.draw(5, step, 0, settings.tokens(new RankPlace(0, 0, 0, 0)), CONTEXT);
            keys.at(0, 0);
            StreamDropout dropout =
                    StreamDropout.allocate(scopes.scratch(), keys, part, CONTEXT, true, SHARE);
            Tensor x = scopes.scratch().tensor("ones", DType.F32, part.ownRows(CONTEXT), WIDTH);
            float[] ones = new float[Math.toIntExact(x.elements())];
            Arrays.fill(ones, 1);
            x.write(MemorySegment.ofArray(ones));

            Tensor gradient = dropout.gradient(device.kernels(), x, dropout.mask(place));
            dropout.drop(device.kernels(), x, dropout.mask(place));

            float[] result = x.contents().toArray(ValueLayout.JAVA_FLOAT);
            assertThat(gradient.contents().toArray(ValueLayout.JAVA_FLOAT)).isEqualTo(result);
            return result;
        }
    }

    private static double dropped(float[] values) {
        int zeros = 0;
        for (float value : values) {
            zeros += value == 0 ? 1 : 0;
        }
        return (double) zeros / values.length;
    }

    @Test
    void theShareIsDroppedAndTheRestMakesUpForIt() {
        float[] values = dropped(ShardShape.whole(shape), 1, "embeddings");

        double deviation = Math.sqrt(SHARE * (1 - SHARE) / values.length);
        assertThat(dropped(values)).isCloseTo(SHARE, within(4 * deviation));
        for (float value : values) {
            assertThat(value == 0 || value == 1.25f).isTrue();
        }
    }

    @Test
    void placesStepsRowsAndColumnsAreIndependent() {
        float[] one = dropped(ShardShape.whole(shape), 1, "h.0.attn.c_proj.weight");
        float[] place = dropped(ShardShape.whole(shape), 1, "h.0.mlp.c_proj.weight");
        float[] step = dropped(ShardShape.whole(shape), 2, "h.0.attn.c_proj.weight");

        expectIndependent(one, place, 0);
        expectIndependent(one, step, 0);
        expectIndependent(one, one, 1);
        expectIndependent(one, one, WIDTH);
    }

    private static void expectIndependent(float[] a, float[] b, int shift) {
        int both = 0;
        int count = a.length - shift;
        for (int i = 0; i < count; i++) {
            both += a[i] == 0 && b[i + shift] == 0 ? 1 : 0;
        }
        double p = SHARE * SHARE;
        assertThat((double) both / count).isCloseTo(p, within(4 * Math.sqrt(p * (1 - p) / count)));
    }

    @Test
    void shardsThatDivideRowsDropWhatTheWholeDrops() {
        float[] whole = dropped(ShardShape.whole(shape), 1, "embeddings");
        int half = whole.length / 2;

        for (int shard = 0; shard < 2; shard++) {
            var part = new ShardShape(shape, shard, 2, true, DType.F32);
            assertThat(dropped(part, 1, "embeddings"))
                    .isEqualTo(Arrays.copyOfRange(whole, shard * half, (shard + 1) * half));
        }
    }
}
