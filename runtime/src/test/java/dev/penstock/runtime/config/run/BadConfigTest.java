package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class BadConfigTest {
    @TempDir Path folder;

    @BeforeEach
    void someText() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
"""
# written                                 | key                       | expected                          | got              | advice
run.name = "a/b c"                        | run.name                  | letters, digits                   | "a/b c"          | try a-b-c
model.widht = 64                          | model.widht               | a key of section model            | an unknown key   | did you mean model.width?
modle { width = 64 }                      | modle                     | one of the sections run, model    | an unknown key   | did you mean model?
model.learning_rate = 1                   | model.learning_rate       | a key of section model            | an unknown key   | did you mean optimizer.learning-rate?
model.xyzzy = 1                           | model.xyzzy               | a key of section model            | an unknown key   | config keys
model = 5                                 | model                     | a section model { .. }            | 5                | braces
model.width = wide                        | model.width               | an integer, at least 1            | "wide"           | the default is 256
model.width = 2.5                         | model.width               | an integer                        | 2.5              | the default is 256
model.width = 99999999999                 | model.width               | an integer                        | 99999999999      | the default
model.width = [1]                         | model.width               | an integer                        | [1]              | the default
model.layers = 0                          | model.layers              | an integer, at least 1            | 0                | the default is 4
model.tied = maybe                        | model.tied                | true or false                     | "maybe"          | the default is true
optimizer.beta1 = 1                       | optimizer.beta1           | at least 0 and below 1            | 1                | 0.9
optimizer.learning-rate = 0               | optimizer.learning-rate   | above 0                           | 0                | 6e-4
optimizer.min-learning-rate = 1           | optimizer.min-learning-rate | at most optimizer.learning-rate | 1.0              | try auto
optimizer.schedule = cosin                | optimizer.schedule        | one of constant, linear, cosine, wsd | "cosin"       | did you mean cosine?
parallel.outer = 4                        | parallel.outer            | a section parallel.outer { .. }   | 4                | put its keys in braces
optimizer.schedul = wsd                   | optimizer.schedul         | a key of section optimizer        | an unknown key   | did you mean optimizer.schedule?
shedule { kind = gpipe }                  | shedule                   | one of the sections run, model    | an unknown key   | did you mean schedule?
optimizer.decay-steps = 10                | optimizer.decay-steps     | auto where optimizer.schedule = cosine | 10          | optimizer.schedule = wsd
optimizer { schedule = constant, min-learning-rate = 1e-5 } | optimizer.min-learning-rate | auto where optimizer.schedule = constant | 1.0E-5 | try optimizer.schedule = cosine
optimizer { schedule = wsd, decay-steps = 951 } | optimizer.decay-steps | at most the 950 steps that follow the warm-up | 951  | try auto
optimizer { schedule = wsd, decay-steps = 0 } | optimizer.decay-steps   | auto, or an integer, at least 1   | 0                | auto
schedule.kind = gpip                      | schedule.kind             | one of 1f1b, gpipe, interleaved-1f1b,  | "gpip"       | did you mean gpipe?
schedule.kind = 7                         | schedule.kind             | one of 1f1b                       | 7                | the default is 1f1b
schedule.file = nowhere.txt               | schedule.file             | a path to something that exists   | nowhere.txt      | check the name
schedule.without = [1]                    | schedule.without          | [] unless schedule.kind is wired-1f1b or wired-zb | [1] | leave it out
schedule.wiring = random                   | schedule.wiring         | straight unless schedule.kind is wired | random      | leave it out
schedule { kind = wired-zb, wiring-seed = 1 } | schedule.wiring-seed  | 0 unless schedule.wiring = random | 1                | leave it out
schedule { kind = wired-zb, without = [4] }, parallel.data = 2 | schedule.without | ranks below 4 (pipeline.stages = 2 x parallel.data = 2) | [4] | the first rank is 0
schedule { kind = wired-zb, without = [1, 3] }, parallel.data = 2 | schedule.without | a rank that is left for every stage | [1, 3], so nobody for stages [1] | rank r of replica d
schedule { kind = wired-zb, costs = [1, 1, 1, 1, 1, 1] }, parallel.data = 2 | schedule.costs | none, or 12 numbers: three for each of 4 ranks | 6 numbers | leave it out
schedule { kind = wired-zb, candidates = [zb-h1] } | schedule.candidates | no candidates beside or among wired kinds | [zb-h1] | leave them out
data.source = "gone/*.txt"                | data.source               | a path to something that exists   | gone             | check the name
data.source = "a\\u0000b"                | data.source               | a path to something that exists   | which no file can be called | take the character out
run.directory = "a\\u0000b"              | run.directory             | a path                            | which no file can be called | take the character out
model.width = 250                         | model.width               | a multiple of model.heads = 4     | 250              | try 248 or 252
model { width = 25600, heads = 128 }      | model.width               | at most 2,147,483,647 parameters of a block on a shard | about 7,864,678,592 | parallel.tensor
model { width = 8192, vocabulary = 300000 } | model.vocabulary        | parameters of the token table     | about 2,457,600,000 | parallel.tensor
model { width = 8192, context = 1000000 } | model.context             | parameters of the position table  | about 8,192,000,000 | a shorter context
model.vocabulary = 100                    | model.vocabulary          | at least the 256 tokens           | 100              | tokenizer
batch.sequences = 10                      | batch.sequences           | a multiple of batch.micro-batches = 8 | 10           | try 8 or 16
parallel.context = 3                      | model.context             | a multiple of parallel.context = 3 | 256             | try 255 or 258
parallel { data = 2, tensor = 2, devices = 4 } | parallel.devices | 8, one for each rank (pipeline.stages 2 x tensor 2 x context 1 x data 2) | 4 | change a factor
parallel.stages = 3, pipeline.stages = 2  | parallel.stages           | 2 as in pipeline.stages, which is the same key | 3 | leave one of the two out
parallel.stages = 0                       | pipeline.stages           | an integer, at least 1             | 0               | the default is 2
parallel { context = 2 }, schedule { kind = seq1f1b, slice-lengths = [127, 129] } | schedule.slice-lengths | multiples of parallel.context = 2 | [127, 129] | slice-lengths = equal
parallel.sequence = true                  | parallel.tensor           | 2 or more where parallel.sequence = true | 1          | try parallel.tensor = 2
parallel { tensor = 4, sequence = true, context = 2 }, batch.sequences = 8, schedule { kind = seq1f1b, slice-lengths = [12, 244] } | parallel.sequence | multiples of parallel.tensor = 4 | [6, 122] | parallel.sequence = false
parallel { context = 128 }, schedule { kind = seq1f1b, slices = 4 } | schedule.slices | at most 2 | 4 | try fewer slices
device { kind = cuda, gemm = java }       | device.gemm               | auto, cublas or kernels where device.kind = cuda | java | try device.gemm = auto
device.swap = "" | device.swap | none, or a path | "" | name one, or leave the key out
device.swap = disk, pipeline.chunks = 2, schedule.kind = breadth-first | device.swap | none where several ranks share a replica | disk | stages on a rank are pipeline.chunks
device.swap = disk, pipeline.stages = 1 | device.swap | none where the model is one stage | disk | try schedule.kind = breadth-first and pipeline.chunks = 4
device.swap = disk, pipeline { stages = 1, chunks = 4 }, schedule.kind = breadth-first, parallel { data = 2, zero.stage = 1 } | device.swap | none where replicas divide state | disk | leave parallel.zero out
device.swap = disk, pipeline { stages = 1, chunks = 4 }, schedule.kind = breadth-first, optimizer.gradient-sum = fixed-point | device.swap | none where gradients are summed exactly | disk | leave optimizer.gradient-sum out
device.swap = disk, pipeline { stages = 1, chunks = 4 }, schedule.kind = breadth-first, fine-tune.freeze = ["h.0.*"] | device.swap | none where only some of the model is trained | disk | train all of it
device.kind = cuda, optimizer.state = int8 | optimizer.state | float32 where device.kind = cuda | int8 | parallel.zero.stage = 1
device.kind = cuda, parallel.zero { stage = 1, offload = disk } | parallel.zero.offload | none where device.kind = cuda | disk | zero.stage = 1
parallel.collectives = nccl               | parallel.collectives      | ordered or auto where device.kind = auto | nccl | try device.kind = cuda
device.kind = "cuda:1", parallel.collectives = nccl | parallel.collectives | ordered or auto where all ranks share one GPU | nccl | try device.kind = cuda
device.kind = cuda, parallel.collectives = nccl, recovery.mirror = true | parallel.collectives | ordered where recovery.mirror = true | nccl | NCCL's sums depend
device.gemm = cublas                      | device.gemm               | auto, onednn or java where device.kind = auto | cublas | try device.gemm = auto
recovery.rebalance-after = 10 minutes     | recovery.rebalance-after  | less than recovery.room-patience = 600 s | 600 s     | 10 s
pipeline.stages = 7                       | pipeline.stages           | model.layers = 4                  | 7                | fewer stages
pipeline.partition = [1, 2]               | pipeline.partition        | add up to 4                       | sum 3            | [2, 2]
pipeline.partition = [1, 1, 2]            | pipeline.partition        | 2 entries                         | 3 entries        | [2, 2]
pipeline.partition = [4, -1]              | pipeline.partition[1]     | an integer, at least 0            | -1               | ''
schedule.costs = [1, x, 3]                | schedule.costs[1]         | an integer, at least 0            | "x"              | ''
schedule { kind = wired-zb }, optimizer.gradient-sum = fixed-point, parallel { data = 2, outer.every = 4 } | parallel.outer.every | none where replicas do each other's micro-batches (schedule.kind = wired-zb) | 4 | leave it out
schedule.kind = wired-1f1b, recovery.degraded = on | parallel.data    | 2 or more with recovery.degraded = true | 1          | try parallel.data = 2
pipeline { stages = 3, partition = [2, 0, 2] } | pipeline.partition   | no 0 but at the ends              | [2, 0, 2]        | [2, 1, 1]
schedule { kind = seq1f1b, slice-lengths = [1, 2] } | schedule.slice-lengths | model.context = 256      | sum 3            | equal
schedule.recompute = [0, 4]               | schedule.recompute        | blocks from 0 to 3                | [0, 4]           | blocks
schedule.recompute = block                | schedule.recompute        | one of none, full, blocks, or     | "block"          | did you mean blocks?
schedule { kind = terapipe, slices = 257 } | schedule.slices          | one slice per token               | 257              | fewer
timeouts.lease = 3                        | timeouts.lease            | a duration such as 5 s            | 3 without a unit | write ms
timeouts.lease = 1 ms                     | timeouts.lease            | at least 100 ms                   | 1 ms             | 3 s
data-plane.term-length = 3 MiB            | data-plane.term-length    | a power of two                    | 3 MiB            | 2 MiB
data-plane.term-length = much             | data-plane.term-length    | a size such as 8 MiB              | "much"           | 8 MiB
data-plane.mtu = 1000                     | data-plane.mtu            | a multiple of 32                  | 1000             | 992
data-plane.udp-term-length = 3 MiB        | data-plane.udp-term-length | a power of two                   | 3 MiB            | 2 MiB
data-plane.udp-mtu = 1000                 | data-plane.udp-mtu        | a multiple of 32                  | 1000             | 992
data-plane.transport = tcp                | data-plane.transport      | one of auto, ipc, udp             | "tcp"            | auto
data-plane.port = 70000                   | data-plane.port           | at most 65535                     | 70000            | default is 0
data-plane { term-length = 64 KiB }       | data-plane.mtu            | an eighth                         | 65504            | smaller mtu
data-plane.emulate.bandwidth = 100        | data-plane.emulate.bandwidth | a bandwidth such as 100 Mbit/s | 100              | 12.5 MB/s
data-plane.emulate.bandwidth = 10 bit/s   | data-plane.emulate.bandwidth | at least 1 kbit/s              | 10 bit/s         | real
data-plane.emulate.latency = 1 minute     | data-plane.emulate.latency | at most 10 s                     | 1 minute         | 0 s
data-plane.emulate.loss = 60 %            | data-plane.emulate.loss   | at most 50 % | 60 %        | default is 0 %
data-plane.emulate.between = [[0, 1], [1]] | data-plane.emulate.between | ranks from 0 to 1, the ranks of this run, each at one site | [[0, 1], [1]] | between = all
data-plane.emulate.between = [[0, 2]]     | data-plane.emulate.between | each at one site                 | [[0, 2]]         | between = all
data-plane.emulate.links = [{ from = 0, to = 1, width = 3 }] | data-plane.emulate.links[0].width | one of from, to, bandwidth | an unknown key | remove it
data-plane.emulate.links = [{ from = 0 }] | data-plane.emulate.links[0].to | an integer, at least 0      | nothing          | the rank that receives
data-plane.emulate.links = [{ from = 0, to = 1, latency = 3 }] | data-plane.emulate.links[0].latency | or a duration | 3 without a unit | write ms
data-plane.emulate.links = [{ from = 1, to = 1 }] | data-plane.emulate.links | links between two ranks | from = 1, to = 1 | from = 0, to = 1
data-plane.emulate.links = [{ from = 1, to = 0 }, { from = 1, to = 0 }] | data-plane.emulate.links | each direction at most once | 2 entries for 1 | leave one
device.kind = cuda, parallel.collectives = nccl, data-plane.emulate.latency = 1 ms | parallel.collectives | ordered or auto where data-plane.emulate | nccl | ordered
device.vector-bits = 128                  | device.vector-bits        | one of auto, 512, 256             | 128              | auto
device.memory-limit = 5                   | device.memory-limit       | none, or a size                   | 5                | none
report.trace-steps = 5                    | report.trace-steps        | a list                            | 5                | [5, 20, 50]
""")
    void isOneProblemThatSaysWhatToTry(
            String written, String key, String expected, String got, String advice)
            throws IOException {
        List<Problem> problems = problemsOf("data.source = corpus.txt\n" + written + "\n");

        assertThat(problems)
                .singleElement()
                .satisfies(
                        problem -> {
                            assertThat(problem.key()).isEqualTo(key);
                            assertThat(problem.expected()).contains(expected);
                            assertThat(problem.got()).contains(got);
                            assertThat(problem.advice()).contains(advice);
                        });
    }

    @Test
    void allProblemsAreToldAtOnceWithFileAndLine() throws IOException {
        List<Problem> problems =
                problemsOf(
                        """
                        data.source = corpus.txt
                        model { width = 250, heads = 4
                                hedas = 4 }
                        schedule.kind = 2f2b
                        batch.sequences = many
                        """,
                        "run.steps=-1");

        assertThat(problems)
                .extracting(Problem::toString)
                .satisfiesExactly(
                        p -> assertThat(p).startsWith("--set run.steps=-1: run.steps: expected"),
                        p -> assertThat(p).contains("bad.conf:2: model.width: expected a multiple"),
                        p -> assertThat(p).contains("bad.conf:3: model.hedas: expected a key"),
                        p -> assertThat(p).contains("bad.conf:4: schedule.kind: expected one of"),
                        p -> assertThat(p).contains("bad.conf:5: batch.sequences: expected an"));
    }

    @Test
    void aMissingKeyIsNamed() throws IOException {
        assertThat(problemsOf("run.steps = 1"))
                .singleElement()
                .satisfies(problem -> assertThat(problem.key()).isEqualTo("data.source"));
    }

    @Test
    void aMissingFileIsAProblem() {
        Path nowhere = folder.resolve("nowhere.conf");

        assertThat(problems(nowhere))
                .singleElement()
                .asString()
                .contains("nowhere.conf: no such file");
    }

    @Test
    void aFolderIsNoConfiguration() {
        assertThat(problems(folder))
                .singleElement()
                .asString()
                .contains("this is a folder, not a configuration file");
    }

    @Test
    void aBinaryFileIsNoConfiguration() throws IOException {
        Path weights = folder.resolve("model.safetensors");
        Files.write(weights, new byte[] {'{', '"', 0, 1, 2, 27, '[', '"', '}'});

        assertThat(problems(weights))
                .singleElement()
                .asString()
                .contains("model.safetensors: this is a binary file, not a configuration file");
    }

    @Test
    void brokenTextIsReportedAtItsLine() throws IOException {
        assertThat(problemsOf("run {\n  steps = [1\n}\n"))
                .singleElement()
                .satisfies(problem -> assertThat(problem.line()).isPositive());
    }

    @Test
    void aMissingIncludeIsAProblem() throws IOException {
        assertThat(problemsOf("include \"quickstrat.conf\""))
                .singleElement()
                .asString()
                .contains("include \"quickstrat.conf\": no such file")
                .doesNotContain("syntax");
    }

    @Test
    void filesThatIncludeEachOtherAreNamedOnce() throws IOException {
        Path one = folder.resolve("one.conf");
        Path two = folder.resolve("two.conf");
        Files.writeString(one, "include \"two.conf\"");
        Files.writeString(two, "include \"one.conf\"");

        assertThat(problemsOf("include \"one.conf\""))
                .singleElement()
                .asString()
                .contains("a circle: %s includes %s includes %s".formatted(one, two, one));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "include file(\"commn.conf\")",
                "include required(file(\"commn.conf\"))",
                "include \"reference.conf\"",
                "include classpath(\"reference.conf\")",
                "include url(\"http://127.0.0.1:1/commn.conf\")",
                "include \"http://127.0.0.1:1/commn.conf\""
            })
    void nothingIsIncludedButFilesAndNoneIsMissedSilently(String include) throws IOException {
        assertThat(problemsOf(include)).singleElement().asString().contains("include ");
    }

    @Test
    void anUnknownReferenceIsAProblem() throws IOException {
        assertThat(problemsOf("data.source = corpus.txt\nmodel.width = ${breadth}"))
                .singleElement()
                .satisfies(problem -> assertThat(problem.line()).isEqualTo(2))
                .asString()
                .contains("breadth");
    }

    @Test
    void anOverrideWithoutAValueIsAProblem() throws IOException {
        assertThat(problemsOf("data.source = corpus.txt", "run.steps"))
                .singleElement()
                .asString()
                .startsWith("--set run.steps: expected key=value");
    }

    @Test
    void whatBuildsOnASlipOfThePenIsNotToldAsWell() throws IOException {
        // heads may have been meant to be 5: whether they divide the width is not known
        assertThat(problemsOf("data.source = corpus.txt\nmodel { width = 250, hedas = 5 }"))
                .singleElement()
                .satisfies(problem -> assertThat(problem.key()).isEqualTo("model.hedas"));
    }

    @Test
    void anOverrideWithoutAValueHidesNothingElse() throws IOException {
        assertThat(problemsOf("data.source = gone.txt\nmodel.width = wide", "run.steps", "x.y=1"))
                .extracting(Problem::key)
                .containsExactlyInAnyOrder("", "x", "data.source", "model.width");
    }

    @Test
    void everyUnknownReferenceIsToldAtItsKeyAndHidesNothingElse() throws IOException {
        String text =
                """
                data { source = corpus.txt, field = ${nobody} }
                model.width = ${breadth}
                batch = ${small} { sequences = 8 }
                run.steps = 0
                """;

        assertThat(problemsOf(text))
                .extracting(Problem::key)
                .containsExactly("data.field", "model.width", "batch", "run.steps");
    }

    @Test
    void referencesInACircleAreOneProblem() throws IOException {
        assertThat(problemsOf("model.width = ${model.heads}\nmodel.heads = ${model.width}"))
                .isNotEmpty()
                .allSatisfy(problem -> assertThat(problem.toString()).contains("${..}"));
    }

    @Test
    void textThatIsNotReadHidesNoProblemOfTheOverrides() throws IOException {
        assertThat(problemsOf("run {\n  steps = [1\n}\n", "batch.sequences=-1", "model.widht=3"))
                .extracting(Problem::key)
                .containsExactlyInAnyOrder("", "batch.sequences", "model.widht");
    }

    @Test
    void whatIsFoundLaterIsReportedAtItsKey() throws IOException {
        Path file = Files.writeString(folder.resolve("short.conf"), "\n\ndata.source = corpus.txt");
        LoadedConfig loaded = ConfigLoader.loadWithOrigins(file, List.of());

        Problem problem = loaded.problem("data.source", "at least 257 bytes", "18", "add text");

        assertThat(problem.toString())
                .endsWith(
                        "short.conf:3: data.source: expected at least 257 bytes, got 18; add text");
    }

    private List<Problem> problemsOf(String text, String... overrides) throws IOException {
        return problems(Files.writeString(folder.resolve("bad.conf"), text), overrides);
    }

    private static List<Problem> problems(Path file, String... overrides) {
        ConfigException thrown =
                catchThrowableOfType(
                        ConfigException.class, () -> ConfigLoader.load(file, List.of(overrides)));
        return thrown.problems();
    }
}
