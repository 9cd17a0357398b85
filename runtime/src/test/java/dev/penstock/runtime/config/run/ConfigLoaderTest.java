package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.penstock.runtime.config.links.Bandwidth;
import dev.penstock.runtime.config.links.FrameLoss;
import dev.penstock.runtime.config.links.LinkEntry;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.evaluation.Protocol;
import dev.penstock.runtime.evaluation.TaskKind;
import dev.penstock.runtime.evaluation.TaskRequest;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.schedules.generate.base.SliceBalance;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ConfigLoaderTest {
    @TempDir Path folder;

    @BeforeEach
    void someText() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be");
    }

    @Test
    void everyKeyButTheDataHasADefault() throws IOException {
        RunConfig config = load("data.source = corpus.txt");

        assertThat(config)
                .isEqualTo(
                        new RunConfig(
                                new RunSection("my-run", 42, 1000, Path.of("runs")),
                                new ModelSection(256, 256, 4, 4, true, Optional.empty()),
                                new DataSection(
                                        folder.resolve("corpus.txt"),
                                        DataSection.Format.TEXT,
                                        "text",
                                        DataSection.Tokenizer.BYTES,
                                        0.05,
                                        DataSection.Packing.NONE,
                                        DataSection.Loss.ALL,
                                        DataSection.Template.TOKENIZER,
                                        0.15,
                                        Optional.empty()),
                                new BatchSection(
                                        8,
                                        8,
                                        16,
                                        BatchSection.Arrangement.HILL,
                                        BatchSection.Last.FULL),
                                new PipelineSection(
                                        2,
                                        Optional.empty(),
                                        PipelineSection.Partition.Rule.FLOPS,
                                        10,
                                        0.05,
                                        PipelineSection.Processes.SINGLE,
                                        Optional.empty()),
                                new ParallelSection(
                                        ParallelSection.Shards.of(1),
                                        List.of(),
                                        ParallelSection.TensorKind.AUTO,
                                        false,
                                        1,
                                        1,
                                        0,
                                        ParallelSection.Residency.PASS,
                                        1,
                                        ParallelSection.Reduce.PER_STEP,
                                        Optional.empty(),
                                        Optional.empty(),
                                        0,
                                        0,
                                        1,
                                        ParallelSection.OuterOptimizer.NESTEROV,
                                        0.7,
                                        0.9,
                                        0.5,
                                        ParallelSection.OuterCodec.NONE,
                                        Optional.empty(),
                                        ParallelSection.Collectives.ORDERED,
                                        Optional.empty()),
                                new ScheduleSection(
                                        ScheduleSection.Kind.ONE_FORWARD_ONE_BACKWARD,
                                        ScheduleSection.Backward.FIFO,
                                        Optional.empty(),
                                        SliceLengths.Rule.EQUAL,
                                        ScheduleSection.Activations.AS_SET,
                                        Recompute.Rule.NONE,
                                        Offload.Rule.NONE,
                                        1,
                                        Optional.empty(),
                                        List.of(),
                                        List.of(),
                                        ScheduleSection.Wiring.STRAIGHT,
                                        0,
                                        List.of(),
                                        Optional.empty(),
                                        true),
                                new OptimizerSection(
                                        6e-4,
                                        Optional.empty(),
                                        50,
                                        LearningRate.Schedule.COSINE,
                                        Optional.empty(),
                                        0.9,
                                        0.95,
                                        1e-8,
                                        0.1,
                                        false,
                                        1.0,
                                        GradientSum.FLOAT32,
                                        OptimizerState.FLOAT32,
                                        new OptimizerSection.LossScale("none"),
                                        1L << 32,
                                        1000,
                                        2),
                                new FineTuneSection(
                                        FineTuneSection.Method.FULL,
                                        8,
                                        16,
                                        List.of(),
                                        0,
                                        Optional.empty(),
                                        List.of(),
                                        FineTuneSection.Frozen.AUTO),
                                new DeviceSection(
                                        DeviceKind.AUTO,
                                        Optional.empty(),
                                        DeviceSection.Gemm.AUTO,
                                        DeviceSection.Precision.FLOAT32,
                                        128,
                                        DeviceSection.VectorBits.AUTO,
                                        Optional.empty(),
                                        Optional.empty(),
                                        DeviceSection.SwapCache.KEEP,
                                        50,
                                        Optional.empty(),
                                        25,
                                        false),
                                new EvaluationSection(50, 8, List.of()),
                                new CheckpointSection(100, 2, false),
                                new DataPlaneSection(
                                        new Bytes(8 << 20),
                                        65504,
                                        Optional.empty(),
                                        DataPlaneSection.Poller.ADAPTIVE,
                                        false,
                                        DataPlaneSection.Transport.AUTO,
                                        Optional.empty(),
                                        0,
                                        Optional.empty(),
                                        Optional.empty(),
                                        new Bytes(8 << 20),
                                        new Bytes(2 << 20),
                                        new Bytes(2 << 20),
                                        false,
                                        Optional.empty(),
                                        true,
                                        Optional.empty(),
                                        Duration.ZERO,
                                        new FrameLoss(0),
                                        Optional.empty(),
                                        List.of(),
                                        1,
                                        Optional.of(DataPlaneSection.Codec.NONE),
                                        Optional.empty(),
                                        0,
                                        0.1,
                                        false,
                                        0),
                                new TimeoutSection(
                                        Duration.ofSeconds(3),
                                        Duration.ofSeconds(5),
                                        Duration.ofSeconds(60),
                                        Duration.ofSeconds(60),
                                        Duration.ofSeconds(30)),
                                new RecoverySection(
                                        true,
                                        5,
                                        Duration.ofMinutes(10),
                                        Duration.ofMinutes(10),
                                        Optional.empty(),
                                        1,
                                        RecoverySection.NonFinite.HALT,
                                        false,
                                        false),
                                new ReportSection(List.of(5, 20, 50), 10, true, true, 0),
                                List.of()));
    }

    private static final String EVERY_KEY =
            """
            run { name = other, seed = -7, steps = 20, directory = /tmp/elsewhere }
            model { context = 96, width = 48, layers = 5, heads = 3, tied = false, vocabulary = 300 }
            data {
              source = "*.txt", format = jsonl, field = body, tokenizer = bytes
              validation-fraction = 0.25, packing = documents, template = plain
              mask-share = 0.25, mask-token = 7
            }
            batch { sequences = 12, micro-batches = 4, last = smaller }
            parallel { tensor = 3, sequence = true, context = 1, data = 2, zero {
              stage = 3, residency = layer, prefetch-layers = 2, reduce = per-micro-batch, offload = spill
            }, outer {
              after = 200, lag = 2, fragments = 3, optimizer = sgd, learning-rate = 0.4, momentum = 0.8, mixing = 0.25, codec = int4
            }, ring-from = 4 MiB, collectives = auto, devices = 18 }
            pipeline { stages = 3, chunks = 1, partition = [2, 1, 2]
                       adapt-every = 20, adapt-margin = 0.1, processes = per-stage
                       ranks-per-node = 2 }
            schedule {
              kind = seq1f1b, backward = reverse, slices = 3, slice-lengths = [40, 32, 24]
              activations = as-set
              recompute = [0, 3], offload = [1], reload-ahead = 2, file = corpus.txt, candidates = []
              costs = [1, 2, 3, 4, 5, 6, 7, 8, 9]
              wiring = straight, wiring-seed = 0, without = [], hold-more = auto, pairs-at-once = false
            }
            optimizer {
              learning-rate = 0.01, min-learning-rate = 1e-5, warmup-steps = 3
              schedule = wsd, decay-steps = 5, beta1 = 0.8, beta2 = 0.99, epsilon = 1e-6
              weight-decay = 0, decay-all = true, clip-norm = 0
              gradient-sum = fixed-point, state = int8, loss-scale = dynamic
              loss-scale-initial = 65536, loss-scale-window = 500, loss-scale-hysteresis = 3
            }
            device {
              kind = cpu, threads = 3, gemm = java, precision = bf16, reduction-block = 8
              vector-bits = 256, memory-limit = 1.5 GiB, swap-cache = drop
              swap-intensity = 51, offload = activations, offload-intensity = 26, graphs = on
            }
            evaluation {
              every = 14, batches = 1
              tasks = [ { task = wikitext, protocol = megatron, stride = 32, data = "*.txt" } ]
            }
            checkpoint { every = 7, retain = 5 }
            data-plane {
              term-length = 64 KiB, mtu = 8192, in-flight = 9, poller = spinning, crc = true
              transport = udp, host = node-1, port = 4711, advertised-host = node-1.cluster
              udp-mtu = 8192, udp-term-length = 1 MiB, receiver-window = 1 MiB
              socket-buffer = 4 MiB, insecure = true, media-driver = .
              emulate {
                bandwidth = 100 Mbit/s, latency = 20 ms, loss = 0.5 %, seed = 7
                between = [[0, 1], [2]], links = [{ from = 0, to = 2, bandwidth = 1.5 MB/s, loss = 0 }]
              }
              device-copies = false, codec = int4, gradient-codec = top-k, codec-from-stage = 2
              top-k = 0.25, error-feedback = false, delta-rows = 0
            }
            timeouts { lease = 500 ms, stall-report = 1 minute, stall = 2 minutes, start = 2 s, stop = 3 s }
            recovery {
              enabled = false, max-restarts = 2, window = 1 minute, room-patience = 5 s
              rebalance-after = 2 s, spares = 1, non-finite = skip, mirror = on
            }
            report { trace-steps = [], sample = false }
            """;

    @Test
    void everyKeyCanBeSet() throws IOException {
        RunConfig config = load(EVERY_KEY);

        assertThat(config)
                .isEqualTo(
                        new RunConfig(
                                new RunSection("other", -7, 20, Path.of("/tmp/elsewhere")),
                                new ModelSection(96, 48, 5, 3, false, Optional.of(300)),
                                new DataSection(
                                        folder.resolve("*.txt"),
                                        DataSection.Format.JSONL,
                                        "body",
                                        DataSection.Tokenizer.BYTES,
                                        0.25,
                                        DataSection.Packing.DOCUMENTS,
                                        DataSection.Loss.ALL,
                                        DataSection.Template.PLAIN,
                                        0.25,
                                        Optional.of(7)),
                                new BatchSection(
                                        12,
                                        4,
                                        16,
                                        BatchSection.Arrangement.HILL,
                                        BatchSection.Last.SMALLER),
                                new PipelineSection(
                                        3,
                                        Optional.of(1),
                                        new PipelineSection.Partition.Given(List.of(2, 1, 2)),
                                        20,
                                        0.1,
                                        PipelineSection.Processes.PER_STAGE,
                                        Optional.of(2)),
                                new ParallelSection(
                                        ParallelSection.Shards.of(3),
                                        List.of(), // does not go with most of the rest
                                        ParallelSection.TensorKind.AUTO,
                                        true,
                                        1,
                                        2,
                                        3,
                                        ParallelSection.Residency.LAYER,
                                        2,
                                        ParallelSection.Reduce.PER_MICRO_BATCH,
                                        Optional.of(Path.of("spill")),
                                        Optional.empty(), // does not go with zero.stage
                                        200,
                                        2,
                                        3,
                                        ParallelSection.OuterOptimizer.SGD,
                                        0.4,
                                        0.8,
                                        0.25,
                                        ParallelSection.OuterCodec.INT4,
                                        Optional.of(new Bytes(4 << 20)),
                                        ParallelSection.Collectives.AUTO,
                                        Optional.of(18)),
                                new ScheduleSection(
                                        ScheduleSection.Kind.SEQ1F1B,
                                        ScheduleSection.Backward.REVERSE,
                                        Optional.of(3),
                                        new SliceLengths.Given(List.of(40, 32, 24)),
                                        ScheduleSection.Activations.AS_SET,
                                        new Recompute.Given(List.of(0, 3)),
                                        new Offload.Given(List.of(1)),
                                        2,
                                        Optional.of(folder.resolve("corpus.txt")),
                                        List.of(),
                                        List.of(1, 2, 3, 4, 5, 6, 7, 8, 9),
                                        ScheduleSection.Wiring.STRAIGHT,
                                        0,
                                        List.of(),
                                        Optional.empty(),
                                        false),
                                new OptimizerSection(
                                        0.01,
                                        Optional.of(1e-5),
                                        3,
                                        LearningRate.Schedule.WSD,
                                        Optional.of(5),
                                        0.8,
                                        0.99,
                                        1e-6,
                                        0,
                                        true,
                                        0,
                                        GradientSum.FIXED_POINT,
                                        OptimizerState.INT8,
                                        new OptimizerSection.LossScale("dynamic"),
                                        1 << 16,
                                        500,
                                        3),
                                new FineTuneSection(
                                        FineTuneSection.Method.FULL,
                                        8,
                                        16,
                                        List.of(),
                                        0,
                                        Optional.empty(),
                                        List.of(),
                                        FineTuneSection.Frozen.AUTO),
                                new DeviceSection(
                                        DeviceKind.CPU,
                                        Optional.of(3),
                                        DeviceSection.Gemm.JAVA,
                                        DeviceSection.Precision.BF16,
                                        8,
                                        DeviceSection.VectorBits.BITS_256,
                                        Optional.of(new Bytes(3L << 29)),
                                        Optional.empty(),
                                        DeviceSection.SwapCache.DROP,
                                        51,
                                        Optional.of(Path.of("activations")),
                                        26,
                                        true),
                                new EvaluationSection(
                                        14,
                                        1,
                                        List.of(
                                                new EvaluationTask(
                                                        new TaskRequest(
                                                                TaskKind.WIKITEXT,
                                                                Protocol.MEGATRON,
                                                                OptionalInt.of(32)),
                                                        folder.resolve("*.txt")))),
                                new CheckpointSection(7, 5, false),
                                new DataPlaneSection(
                                        new Bytes(64 << 10),
                                        8192,
                                        Optional.of(9),
                                        DataPlaneSection.Poller.SPINNING,
                                        true,
                                        DataPlaneSection.Transport.UDP,
                                        Optional.of("node-1"),
                                        4711,
                                        Optional.of("node-1.cluster"),
                                        Optional.of(8192),
                                        new Bytes(1 << 20),
                                        new Bytes(1 << 20),
                                        new Bytes(4 << 20),
                                        true,
                                        Optional.of(folder),
                                        false,
                                        Optional.of(new Bandwidth(100_000_000)),
                                        Duration.ofMillis(20),
                                        new FrameLoss(0.005),
                                        Optional.of(List.of(List.of(0, 1), List.of(2))),
                                        List.of(
                                                new LinkEntry(
                                                        0,
                                                        2,
                                                        Optional.of(new Bandwidth(12_000_000)),
                                                        Optional.empty(),
                                                        Optional.of(new FrameLoss(0)))),
                                        7,
                                        Optional.of(DataPlaneSection.Codec.INT4),
                                        Optional.of(DataPlaneSection.Codec.TOP_K),
                                        2,
                                        0.25,
                                        false,
                                        0),
                                new TimeoutSection(
                                        Duration.ofMillis(500),
                                        Duration.ofMinutes(1),
                                        Duration.ofMinutes(2),
                                        Duration.ofSeconds(2),
                                        Duration.ofSeconds(3)),
                                new RecoverySection(
                                        false,
                                        2,
                                        Duration.ofMinutes(1),
                                        Duration.ofSeconds(5),
                                        Optional.of(Duration.ofSeconds(2)),
                                        1,
                                        RecoverySection.NonFinite.SKIP,
                                        true,
                                        false),
                                new ReportSection(List.of(), 10, false, true, 0),
                                List.of()));
    }

    @Test
    void stagesMayStandBesideTheOtherFactorsOfTheRanks() throws IOException {
        RunConfig config =
                load("data.source = corpus.txt, parallel { stages = 3, data = 2, devices = 6 }");

        assertThat(config.pipeline().stages()).isEqualTo(3);
        assertThat(config)
                .isEqualTo(
                        load(
                                "data.source = corpus.txt, pipeline.stages = 3,"
                                        + " parallel { stages = 3, data = 2, devices = 6 }"));
        assertThat(reloaded(config)).isEqualTo(config);
    }

    @Test
    void aResolvedTextOfBeforeThereWereLearningRateSchedulesHasTheCosine() throws IOException {
        String before =
                load("data.source = corpus.txt")
                        .resolved()
                        .lines()
                        .filter(line -> !line.matches("  (schedule|decay-steps) = .*"))
                        .collect(Collectors.joining("\n"));

        OptimizerSection optimizer = load(before).optimizer();

        assertThat(before).contains("warmup-steps").doesNotContain("decay-steps");
        assertThat(optimizer.rates(1000)).isEqualTo(LearningRate.cosine(6e-4, 6e-4 / 10, 50, 1000));
    }

    @Test
    void resolvedTextOfDefaultsLoadsBackEqual() throws IOException {
        RunConfig config = load("data.source = corpus.txt");

        assertThat(reloaded(config)).isEqualTo(config);
    }

    @Test
    void resolvedTextOfEveryKeyLoadsBackEqual() throws IOException {
        RunConfig config = load(EVERY_KEY);

        assertThat(reloaded(config)).isEqualTo(config);
    }

    @Test
    void resolvedTextNamesEveryKey() throws IOException {
        String resolved = load("data.source = corpus.txt").resolved();

        assertThat(Keys.all()).hasSizeGreaterThan(50);
        assertThat(Keys.all())
                .allSatisfy(key -> assertThat(resolved).contains("\n  " + key.name() + " = "));
    }

    @Test
    void laterOverridesWinOverEarlierOnesAndOverTheFile() throws IOException {
        RunConfig config =
                load(
                        "data.source = corpus.txt, run.steps = 1",
                        "run.steps=2",
                        "run.steps=3",
                        "schedule.kind=terapipe",
                        "pipeline.partition=[3, 1]");

        assertThat(config.run().steps()).isEqualTo(3);
        assertThat(config.schedule().kind()).isEqualTo(ScheduleSection.Kind.TERAPIPE);
        assertThat(config.pipeline().partition().layers()).hasValue(List.of(3, 1));
    }

    @Test
    void anOverrideThatIsNotHoconIsTakenAsText() throws IOException {
        String glob = folder.resolve("*.txt").toString();

        RunConfig config = load("", "data.source=" + glob);

        assertThat(config.data().source()).isEqualTo(Path.of(glob));
    }

    @Test
    void pathsOfAnIncludedFileLeadToTheFolderOfThatFile() throws IOException {
        Path below = Files.createDirectory(folder.resolve("below"));
        Files.writeString(below.resolve("deep.txt"), "deep");
        Files.writeString(below.resolve("base.conf"), "data.source = deep.txt");

        RunConfig config = load("include \"below/base.conf\"");

        assertThat(config.data().source()).isEqualTo(below.resolve("deep.txt"));
    }

    @Test
    void aRunIsNamedAfterItsFile() throws IOException {
        Path file =
                Files.writeString(folder.resolve("my first run.conf"), "data.source = corpus.txt");

        assertThat(ConfigLoader.load(file, List.of()).run().name()).isEqualTo("my-first-run");
    }

    @Test
    void valuesMayComeFromOtherKeys() throws IOException {
        RunConfig config =
                load("data.source = corpus.txt, model.width = 64, model.context = ${model.width}");

        assertThat(config.model().context()).isEqualTo(64);
    }

    @Test
    void equalSlicesDifferByAtMostOneToken() throws IOException {
        RunConfig config =
                load("data.source = corpus.txt", "schedule.kind=terapipe", "schedule.slices=3");

        assertThat(config.schedule().tokensPerSlice(config.model(), 1)).containsExactly(86, 85, 85);
        RunConfig whole = load("data.source = corpus.txt");
        assertThat(whole.schedule().tokensPerSlice(whole.model(), 1)).containsExactly(256);
    }

    @Test
    void slicesThatContextPartsShareAreMultiplesOfTheParts() throws IOException {
        RunConfig config =
                load(
                        "data.source = corpus.txt, parallel.context = 4",
                        "schedule.kind=terapipe",
                        "schedule.slices=3");

        assertThat(config.schedule().tokensPerSlice(config.model(), 4)).containsExactly(88, 84, 84);
        RunConfig balanced =
                load(
                        "data.source = corpus.txt, parallel.context = 4, model.context = 1024",
                        "schedule { kind = seq1f1b, slices = 3, slice-lengths = balanced }");
        assertThat(balanced.schedule().tokensPerSlice(balanced.model(), 4))
                .hasSize(3)
                .allMatch(length -> length % 8 == 0)
                .satisfies(l -> assertThat(l.stream().mapToInt(i -> i).sum()).isEqualTo(1024));
    }

    @Test
    void balancedSlicesHaveTheWorkOfTheModelsWidth() throws IOException {
        RunConfig config =
                load(
                        "data.source = corpus.txt, model { context = 1024, width = 64 }",
                        "schedule { kind = seq1f1b, slices = 3, slice-lengths = balanced }");

        List<Integer> lengths = config.schedule().tokensPerSlice(config.model(), 1);

        assertThat(lengths).isEqualTo(SliceBalance.ofWidth(64).lengths(1024, 3, 8));
        assertThat(lengths.getFirst()).isGreaterThan(lengths.getLast());
        assertThat(reloaded(config)).isEqualTo(config);
    }

    @Test
    void aWordThatIsNoRuleOfSlicesIsAnsweredWithTheRules() {
        assertThatExceptionOfType(ConfigException.class)
                .isThrownBy(
                        () -> load("data.source = corpus.txt", "schedule.slice-lengths=balancd"))
                .withMessageContaining("one of equal, balanced, or a list [..]")
                .withMessageContaining("did you mean balanced?");
    }

    private RunConfig load(String text, String... overrides) throws IOException {
        Path file = Files.writeString(folder.resolve("my-run.conf"), text);
        return ConfigLoader.load(file, List.of(overrides));
    }

    private RunConfig reloaded(RunConfig config) throws IOException {
        Path file = Files.writeString(folder.resolve("resolved.conf"), config.resolved());
        return ConfigLoader.load(file, List.of());
    }
}
