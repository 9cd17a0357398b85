package dev.penstock.runtime.cli.about;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.gpu.EmulatedGpus;
import dev.penstock.runtime.speed.DiskRate;
import dev.penstock.runtime.speed.LinkRate;
import dev.penstock.runtime.speed.SpeedEstimate;
import dev.penstock.runtime.speed.SpeedReport;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class DoctorCommandTest {
    @Test
    void showsWhatTheMachineOffers() {
        Cli doctor = Cli.run("doctor");

        assertThat(doctor.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(doctor.out())
                .contains(System.getProperty("java.version"))
                .contains(Runtime.getRuntime().availableProcessors() + " cores")
                .containsPattern("Products +(oneDNN \\d+\\.\\d+|our own \\(.+\\))")
                .containsPattern("GPUs +\\S+");
    }

    @Test
    void namesGpusAndWhoMultipliesOnThem() {
        EmulatedGpus.requireEmulated();

        assertThat(Cli.run("doctor").out())
                .contains("emulated GPU, 4.0 GiB, compute capability 8.0; ")
                .containsPattern("products: cuBLAS 13\\.0\\.0 in /\\S+/libcublas\\.so\\.13")
                .containsPattern("collectives: NCCL 2\\.27\\.3 in /\\S+/libnccl\\.so\\.2");
    }

    @Test
    void answersProgramsInJson() throws IOException {
        JsonNode report = JsonMapper.builder().build().readTree(Cli.run("doctor", "--json").out());

        assertThat(report.at("/cpu/cores").asInt())
                .isEqualTo(Runtime.getRuntime().availableProcessors());
        assertThat(report.at("/cpu/vectorBits").asInt()).isIn(128, 256, 512);
        assertThat(report.at("/memory/heapLimitBytes").asLong())
                .isEqualTo(Runtime.getRuntime().maxMemory());
    }

    @Test
    void optionsOfTheMeasurementAreRefusedWithoutIt() {
        Cli doctor = Cli.run("doctor", "--device", "gpu", "--runs", "runs");

        assertThat(doctor.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(doctor.err())
                .startsWith("penstock: 3 problems")
                .contains("--device: expected --speed beside it", "--runs: expected --speed")
                .contains("--device: expected auto, cpu, reference, cuda or cuda:N, got gpu");
    }

    @Test
    void aGpuThatIsNotThereIsBadInput() {
        Cli doctor = Cli.run("doctor", "--speed", "--device", "cuda:999");

        assertThat(doctor.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(doctor.err())
                .startsWith("penstock: --device: ")
                .doesNotContain("at dev.penstock");
        assertThat(doctor.out()).isEmpty();
    }

    @Test
    void aMeasuredMachineIsATable() {
        var report =
                new SpeedReport(
                        "cpu",
                        List.of(
                                new SpeedReport.Product(
                                        "quickstart", "float32", "256 x 256 x 1024", 126.31e9)),
                        48.2e9,
                        List.of(new LinkRate(256 << 10, 2_083.3e6, 124.4)),
                        Optional.of(new DiskRate("/runs", 118.2e6, 942.7e6, 3_822.4, true)),
                        List.of(new SpeedEstimate("quickstart", "float32", 2, 406_400_000, 5039.4)),
                        List.of(new SpeedReport.Missing("products of gpt2-124m", "no time")));

        assertThat(SpeedTable.lines(report))
                .containsExactly(
                        "Device    cpu",
                        "Products  256 x 256 x 1024     float32       126.3 GFLOP/s",
                        "Memory    copied, read and written            48.2 GB/s",
                        "Link      tensors of 256.0 KiB              2083.3 MB/s       124.4 us each",
                        "Disk      written                            118.2 MB/s      3822.4 us for a sync",
                        "          read, perhaps from memory          942.7 MB/s  in /runs",
                        "Missing   products of gpt2-124m: no time",
                        "",
                        "What trainings reach at best, as penstock plan counts with these rates:",
                        "quickstart  float32  2 stages        5039 tokens/s  406.4 ms a step");
    }
}
