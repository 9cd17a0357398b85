package dev.penstock.cuda.gpu;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What ptxas made of every kernel, by the table that cuda/ptx.sh makes; needs no CUDA toolkit. */
class KernelTableTest {
    private static final Path TABLE = Path.of("src/main/cuda/kernels.txt");
    private static final Pattern ENTRY = Pattern.compile("(?m)^\\.visible \\.entry (\\w+)\\(");

    /** Attention and its gradients where factors are rounded, and products of bf16. */
    private static final Pattern ON_TENSOR_CORES =
            Pattern.compile(
                    "attentionOf(Kept)?Halves\\d+|(q|k|roundedQ|roundedK)\\w+GradientOf(Kept)?Halves\\d+|productOfHalves");

    /** How many these are: three of attention by type and width, gradients that are rounded. */
    private static final int OF_TENSOR_CORES = 3 * 4 + 4 + 1;

    /** Four elements at a time: 16 bytes of F32, 8 of bf16. */
    private static final Set<String> LOAD_FLOATS =
            names(
                    """
                    add addBias addBiasAndResidual addBiasRounded addLongs adamW adamWOfRuns attentionDelta
                    attentionDeltaOfHalves biasExactGelu biasGelu biasGradientOfBlocks biasGradientRounded blend
                    copyWords crossEntropyOfRows crossEntropyOfRowsRounded dropout embedding embeddingBackward
                    exactGeluBackward exactGeluBackwardRounded exactGeluRounded findNonFinite findNonFiniteOfAll
                    foldGradient geluBackward geluBackwardRounded geluRounded narrow productOfFloats productOfHalves
                    rotate subtract swiGlu swiGluBackward swiGluBackwardRounded swiGluRounded unfoldGradient
                    attentionOfHalves64 queryGradientOfHalves64 keyValueGradientOfHalves64
                    attentionOfHalves128 queryGradientOfHalves128 keyValueGradientOfHalves128
                    """);

    private static final Set<String> LOAD_HALVES =
            names(
                    """
                    attentionDeltaOfHalves biasGradientOfHalves copyHalves crossEntropyOfHalves dotsOfHalves
                    dotsOfHalvesRounded dropoutOfHalves findNonFiniteHalves findNonFiniteOfAll productOfHalves widen
                    attentionOfKeptHalves128 queryGradientOfKeptHalves128 keyValueGradientOfKeptHalves128
                    roundedQueryGradientOfKeptHalves128 roundedKeyValueGradientOfKeptHalves128
                    """);

    private static final Set<String> STORE_FLOATS =
            names(
                    """
                    add addBias addBiasAndResidual addLongs adamW adamWOfRuns biasExactGelu biasGelu
                    biasGradientOfBlocks biasGradientOfHalves biasGradientRounded blend copyWords crossEntropyOfRows
                    dropout embedding embeddingBackward exactGeluBackward exactGeluBackwardRounded foldGradient
                    geluBackward geluBackwardRounded rotate subtract swiGlu swiGluBackward unfoldGradient widen
                    """);

    private static final Set<String> STORE_HALVES =
            names(
                    """
                    addBiasRounded adamWOfRuns attentionDelta biasGradientRounded copyHalves crossEntropyOfHalves
                    crossEntropyOfRowsRounded dropoutOfHalves exactGeluBackwardRounded exactGeluRounded
                    geluBackwardRounded geluRounded narrow swiGluBackwardRounded swiGluRounded
                    """);

    /** Copy 16 bytes into shared memory while they compute. */
    private static final Set<String> COPY_AHEAD =
            names(
                    """
                    attentionOfKeptHalves64 queryGradientOfKeptHalves64 keyValueGradientOfKeptHalves64
                    roundedQueryGradientOfKeptHalves64 roundedKeyValueGradientOfKeptHalves64
                    """);

    /** Neighbouring threads take neighbouring words; docs/gpu.md has the reasons. */
    private static final Set<String> BY_WORDS =
            names(
                    """
                    layerNorm layerNormRounded layerNormBackwardInput layerNormBackwardInputOfHalves
                    layerNormBackward768 layerNormBackward768OfHalves layerNormBackward1024
                    layerNormBackward1024OfHalves rmsNorm rmsNormRounded rmsNormBackwardInput
                    softmaxPart crossEntropy squaresOfRuns sumsOfRuns
                    addInOrder layerNormBackwardWeightOfBlocks layerNormBackwardWeightOfHalves
                    rmsNormBackwardWeightOfBlocks columnDotsOfHalves
                    attention32 attention64 attention128 queryGradient32 queryGradient64 queryGradient128
                    keyValueGradient32 keyValueGradient64 keyValueGradient128
                    encodeHalves encodeBFloats encodeBytes encodeHalfBytes encodeLargest
                    decodeHalves decodeBFloats decodeBytes decodeHalfBytes decodeLargest
                    clearCounts countTokens startLists listPositions
                    """);

    /** A kernel on an architecture, and the numbers of the columns by their names. */
    private record Row(String kernel, String on, Map<String, Integer> numbers) {
        int of(String column) {
            return requireNonNull(numbers.get(column));
        }
    }

    @Test
    void theTableIsOfTheShippedPtxAndHasEveryKernel() throws Exception {
        String ptx = new String(GpuModule.ptx(), StandardCharsets.US_ASCII);
        List<String> kernels = new ArrayList<>();
        for (Matcher found = ENTRY.matcher(ptx); found.find(); ) {
            kernels.add(found.group(1) + " sm_80");
            kernels.add(found.group(1) + " sm_90");
        }

        assertThat(Files.readAllLines(TABLE).getFirst())
                .as("the kernels changed: run cuda/ptx.sh table")
                .contains(ptx.lines().findFirst().orElseThrow().substring(3));
        assertThat(rows())
                .extracting(each -> each.kernel() + " " + each.on())
                .containsExactlyInAnyOrderElementsOf(kernels);
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm_80", "sm_90"})
    void theTableIsOfTheShippedMachineCode(String architecture) throws Exception {
        String name = GpuModule.cubin(architecture);
        byte[] cubin = GpuModule.class.getResourceAsStream(name).readAllBytes();

        assertThat(Files.readAllLines(TABLE))
                .as("the machine code changed: run cuda/ptx.sh table")
                .contains(
                        "# %s sha256 %s"
                                .formatted(
                                        name,
                                        HexFormat.of()
                                                .formatHex(
                                                        MessageDigest.getInstance("SHA-256")
                                                                .digest(cubin))));
    }

    @Test
    void noKernelKeepsRegistersInMemoryOrFindsOutWhichMemoryAnAddressIsIn() throws Exception {
        for (String column : List.of("stack", "spills", "local", "generic")) {
            assertThat(rows()).as(column).allMatch(each -> each.of(column) == 0);
        }
    }

    @Test
    void everyMultiprocessorHoldsEightWarpsOrMoreOfEveryKernel() throws Exception {
        assertThat(rows()).allMatch(each -> each.of("warps") >= 8);
    }

    @Test
    void productsOfHalvesAreOfTensorCores() throws Exception {
        List<Row> products =
                rows().stream()
                        .filter(each -> ON_TENSOR_CORES.matcher(each.kernel()).matches())
                        .toList();

        assertThat(products).hasSize(2 * OF_TENSOR_CORES).allMatch(each -> each.of("hmma") > 0);
    }

    @Test
    void kernelsMoveFourElementsByOneInstructionUnlessTheirOrderForbidsIt() throws Exception {
        assertThat(rows())
                .allSatisfy(
                        row -> {
                            String kernel = row.kernel();
                            assertThat(row.of("ld128") > 0)
                                    .as("%s loads 16 bytes", kernel)
                                    .isEqualTo(LOAD_FLOATS.contains(kernel));
                            if (LOAD_HALVES.contains(kernel)) {
                                assertThat(row.of("ld64")).as("%s loads 8", kernel).isPositive();
                            }
                            assertThat(row.of("st128") > 0)
                                    .as("%s stores 16 bytes", kernel)
                                    .isEqualTo(STORE_FLOATS.contains(kernel));
                            if (STORE_HALVES.contains(kernel)) {
                                assertThat(row.of("st64")).as("%s stores 8", kernel).isPositive();
                            }
                            assertThat(row.of("async") > 0)
                                    .as("%s copies ahead", kernel)
                                    .isEqualTo(COPY_AHEAD.contains(kernel));
                        });
    }

    /** A new kernel is one or the other. */
    @Test
    void everyKernelLoadsWideOrIsKnownNotTo() throws Exception {
        Set<String> known = new TreeSet<>(BY_WORDS);
        Stream.of(LOAD_FLOATS, LOAD_HALVES, COPY_AHEAD)
                .forEach(
                        wide -> {
                            assertThat(wide).doesNotContainAnyElementsOf(BY_WORDS);
                            known.addAll(wide);
                        });

        assertThat(rows()).extracting(Row::kernel).isSubsetOf(known);
        assertThat(known).isSubsetOf(rows().stream().map(Row::kernel).toList());
    }

    private static List<Row> rows() throws IOException {
        List<String> lines =
                Files.readAllLines(TABLE).stream().filter(line -> !line.startsWith("#")).toList();
        String[] columns = lines.getFirst().split(" +", -1);
        List<Row> rows = new ArrayList<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] cells = line.split(" +", -1);
            Map<String, Integer> numbers = new HashMap<>();
            for (int i = 2; i < cells.length; i++) {
                numbers.put(columns[i], cells[i].equals("-") ? 0 : Integer.parseInt(cells[i]));
            }
            rows.add(new Row(cells[0], cells[1], numbers));
        }
        return rows;
    }

    private static Set<String> names(String lines) {
        return Set.of(lines.strip().split("\\s+", -1));
    }
}
