package dev.penstock.runtime.cli.about;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.gpu.EmulatedGpus;
import java.io.IOException;
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
}
