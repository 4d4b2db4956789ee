// SPDX-License-Identifier: Apache-2.0
// Generated from docs/reference/diagnostics.md by tools/make_note_help.py: edit that page and run the command.
export const NOTE_TEXTS = {
  "cut_off":
    "The recorder stopped before the command ended. Energy and time cover only the recorded part of the run. To do: " +
    "free disk space, keep the recorder alive and record again.",
  "recording_not_ended":
    "A process stopped writing without closing its part of the recording: it was killed, or its disk was full. Its " +
    "data are valid up to that moment; later layers and kernels are missing. To do: let the program exit normally, " +
    "and record again if the end matters.",
  "recording_cut":
    "The end of the file is damaged: writing was cut off there. Data before that byte are valid, later data are " +
    "missing. To do: copy the file again, or record again.",
  "recording_damaged":
    "Bytes inside the file are damaged, and Joulemap skips them. The message names the samples that are missing. " +
    "Counters cover the gap, so the total stays right where later samples exist; layers and kernels of that time " +
    "are missing. share omits such bytes. To do: copy the file again from its origin.",
  "recording_source_lost":
    "The description of a process is missing, so its chunks were skipped. Layers, kernels or samples of that " +
    "process are missing. To do: copy the file again from its origin.",
  "recording_part_open":
    "A process still writes its part when the recorder ends. The part stays beside the recording; report reads " +
    "both. To do: wait until the process has ended, then report again.",
  "recording_part_skipped":
    "The folder of the recording contains something that is named like a part but is no regular file: a link, a " +
    "FIFO, a folder. It is skipped. To do: move it away.",
  "recording_part_unreadable":
    "The part of one process cannot be opened or is not a recording. Data of that process are missing. To do: chmod " +
    "u+r the part that the message names, then report again.",
  "recording_write_failed":
    "Samples or events could not be written to the recording. Energy and activity of that time are not covered. To " +
    "do: free space on that file system and record again.",
  "write_failed":
    "A write failed while the command ran, and the command went on. Data that were not written are missing from the " +
    "recording. To do: free space on that disk and record again.",
  "samples_out_of_order":
    "Samples older than the previous one of the same channel were skipped. Counters are unaffected by a few of " +
    "them.",
  "samples_of_unknown_channel":
    "The file contains samples of a channel that this version does not support. Energy of that channel is missing. " +
    "To do: update Joulemap.",
  "duplicate_samples":
    "Two processes on one machine recorded the same sensor at the same time. The second samples were skipped, so no " +
    "energy is counted twice.",
  "chunks_skipped":
    "The file contains chunks that only a newer Joulemap supports. Their content is missing from the report, or " +
    "from the copy that share writes. To do: update Joulemap.",
  "unknown_marks":
    "The file contains marks that only a newer Joulemap supports. Steps or phases may be missing; the total is " +
    "unaffected. To do: update Joulemap.",
  "unknown_places":
    "The file contains kinds of scopes or kernels that only a newer Joulemap supports. They have energy but no " +
    "name. To do: update Joulemap.",
  "marks_dropped":
    "The program set marks faster than they could be written, and some are missing. Energy is unaffected; steps, " +
    "epochs, regions or windows are missing. To do: set fewer marks.",
  "flock_missing":
    "The file system does not support file locks. Joulemap cannot detect parts that another process still writes; " +
    "the numbers are unaffected otherwise. To do: record to a local disk with -o, then copy the file.",
  "no_recorder":
    "The given files contain no samples: they are parts of processes only. Times are known, energies are not. To " +
    "do: also pass the file that joulemap record wrote on that machine.",
  "no_samples":
    "No sensor was recorded. Times are known, energies are not. To do: run joulemap doctor; an import needs " +
    "--power.",
  "nothing_captured":
    "The recording contains no activity of the requested level, so the table is empty. The total is unaffected. To " +
    "do: record a program that uses a supported framework, CUDA, regions or steps, or choose another --by.",
  "estimates_not_added":
    "Some energies are measured and some are estimated. They are never added: estimates of a machine (report) or of " +
    "a domain (experiment analyze) are left out of the energy. To do: run joulemap doctor on that machine to see " +
    "how to measure it.",
  "no_sensor":
    "Neither a sensor nor an estimate is available on this machine. Energies are unknown. To do: run joulemap " +
    "doctor.",
  "only_estimated":
    "No sensor of this machine is readable. All energies are estimates from CPU time, the power limit and the " +
    "memory size. To do: run joulemap doctor and grant the permission that it prints.",
  "sensor_absent":
    "A sensor that --sensors names cannot be used; the message contains the reason, which may be a missing " +
    "permission. Its domains are missing. To do: run joulemap doctor.",
  "sensor_denied":
    "Permission to read a sensor is missing, or was withdrawn while the command ran. Its energy is missing, or " +
    "incomplete from that moment on. To do: run joulemap doctor; it prints the command that grants the permission.",
  "sensor_unreadable":
    "One value of a sensor exists but cannot be read, or stays at 0. Other values of the sensor are used; a domain " +
    "without any other value is missing. To do: see dmesg and joulemap doctor.",
  "sensor_failed":
    "Reads of a sensor failed while the command ran. A counter covers failed reads with its next value; other gaps " +
    "appear as readings_missing or energy_missing. To do: see dmesg.",
  "sensor_hangs":
    "A read of a sensor did not return, and Joulemap does not read that sensor any more. Its energy after that " +
    "moment is missing. To do: see dmesg: the device or its driver hangs.",
  "sensor_vanished":
    "A sensor disappeared while the command ran: its driver was unloaded or the device was removed. Its energy " +
    "after that moment is missing. To do: see dmesg.",
  "garbage_reading":
    "The file of a sensor contained text that is not a number. Such readings were dropped; a counter covers them " +
    "with its next value. To do: check that file and the driver that writes it.",
  "torn_reading":
    "A value was read while the driver wrote it. Such readings were dropped; the next reading replaces them.",
  "counter_reset":
    "A counter decreased without a wrap, for example after a driver reload or suspend. The energy of that moment is " +
    "missing from the total. To do: measure again without reloading drivers or suspending.",
  "counter_frozen":
    "A counter stopped changing, or never changed. Its energy of that time is missing, or unknown for the whole " +
    "run. Firmware or a virtual machine freezes it, or the run is shorter than its update period. To do: measure " +
    "for longer, or on the host of the virtual machine.",
  "counter_still":
    "doctor saw no change of a counter within 50 ms. It may be frozen; a slow counter looks the same. To do: run " +
    "joulemap stat sleep 10: it reports counter_frozen if the counter never changes.",
  "wrap_missed":
    "A counter was not read for so long that it may have wrapped unnoticed. The energy of that time is missing. To " +
    "do: do not stop Joulemap, and leave it CPU time.",
  "unknown_range":
    "The range of a RAPL counter (max_energy_range_uj) cannot be read. A wrap then looks like a counter_reset, and " +
    "its energy is missing. To do: make that file readable.",
  "energy_missing":
    "Readings do not cover part of the time. The energy of that part is missing and the interval accounts for it, " +
    "or the energy is unknown where too little is covered.",
  "readings_missing":
    "A power sensor was not read for a while. The energy of that time is interpolated from the readings around it, " +
    "and the interval is wider. To do: leave Joulemap CPU time; see dmesg if the sensor failed.",
  "readings_paused":
    "A counter was not read for a while. The total is exact; how the energy is distributed over the pause is " +
    "unknown, so the split of that time is less certain. To do: leave Joulemap CPU time.",
  "window_too_short":
    "A counter did not change: the command or window is shorter than its update period. The energy is unknown. To " +
    "do: repeat the work: joulemap stat -r 20 -- sh -c 'for i in $(seq 1000); do CMD; done'.",
  "sensors_disagree":
    "Two sensors of the same domain differ by more than 5 % and their uncertainties. The first one is used; the " +
    "second is not added. To do: choose one with --sensors.",
  "no_energy_counter":
    "The GPU has no energy counter. Joulemap integrates its power samples and misses changes between two readings.",
  "gpu_denied":
    "A GPU cannot be opened: permission denied. Its energy is missing. To do: check ls -l /dev/nvidia*; in a " +
    "container, pass --gpus all.",
  "gpu_lost":
    "The driver lists a GPU that is lost, not found or needs a reset. Its energy is missing. To do: sudo dmesg | " +
    "grep -i xid; a GPU reset or a reboot restores it.",
  "gpu_failed":
    "The NVIDIA driver, its library or one GPU does not answer. Energies of the affected GPUs are missing. To do: " +
    "run nvidia-smi -q -d POWER: it shows whether the driver answers.",
  "gpu_without_energy":
    "A GPU reports neither energy nor power, such as a virtual GPU. Its energy is missing. To do: measure on the " +
    "host, or use a machine that passes the whole GPU through.",
  "gpu_not_measured":
    "Kernels ran on a GPU whose energy was not recorded. Its rows have times and no energies. To do: run joulemap " +
    "doctor on that machine; for an import, pass its power log or --map.",
  "gpu_shared":
    "Other processes use the GPU, and its total includes their energy. record separates it as the row background; " +
    "stat cannot. To do: wait until the GPU is free, or use joulemap record.",
  "gpu_shared_untold":
    "Other processes use the GPU, but their utilization cannot be read. Their energy is in the total and in idle, " +
    "unattributed or the rows of the command. To do: give the program the GPU exclusively; in a container, use " +
    "docker run --pid=host.",
  "gpu_owner_unknown":
    "NVML lists processes with PIDs of another PID namespace. Whether they belong to the command is unknown, so " +
    "their energy is not separated. To do: use docker run --pid=host, or give the program the GPU exclusively.",
  "mig_mode":
    "The GPU is split into MIG instances. Its energy includes all of them. To do: keep the other instances idle.",
  "mig_whole_gpu":
    "CUDA_VISIBLE_DEVICES names one MIG instance. Only the whole GPU can be measured, and its energy includes the " +
    "other instances. To do: keep the other instances idle.",
  "cuda_device_order":
    "CUDA_VISIBLE_DEVICES uses indexes, and the GPUs are of different models. CUDA orders them by speed, Joulemap " +
    "by PCI address: it may measure another GPU. To do: export CUDA_DEVICE_ORDER=PCI_BUS_ID.",
  "cuda_visible_devices_invalid":
    "An entry of CUDA_VISIBLE_DEVICES is not a GPU of this machine. CUDA ignores it and all later entries, and " +
    "Joulemap does the same. To do: correct the list; nvidia-smi -L shows the GPUs.",
  "cuda_visible_devices_repeated":
    "CUDA_VISIBLE_DEVICES names a GPU twice. It is measured once. To do: name each GPU once; CUDA programs may " +
    "otherwise see none.",
  "nvml_library_refused":
    "JOULEMAP_NVML was ignored, because this program has more privileges than its user. The library of the driver " +
    "is used. To do: unset JOULEMAP_NVML, or use a copy of Joulemap without capabilities.",
  "kernels_by_time":
    "Power samples are slower than kernels, so they cannot separate kernels that always run together. Their energy " +
    "is split by time: sums over a phase or block are reliable, single layers less. The total is measured. To do: " +
    "record --probe, a longer run, or --period 100 for more counter intervals.",
  "kernels_by_library":
    "Powers of some kernel classes come from the kernel library, learned from earlier recordings on this GPU model. " +
    "The total is measured in this run; the split relies on the library. To do: report --library none uses this " +
    "recording only.",
  "kernels_sampled":
    "Kernels were recorded in some steps, and the other steps are extrapolated from them. The total is measured in " +
    "all steps; layers of untraced steps assume that steps repeat. To do: record --trace full records all steps, at " +
    "a higher cost.",
  "kernels_grouped":
    "Only the 20,000 kernels with the most time have a row of their own; all others share one row. Energy is " +
    "unaffected.",
  "kernels_lost":
    "Another profiler took the kernel records for some time. The energy of that time is unattributed; the total is " +
    "unaffected. To do: run without the other profiler.",
  "kernels_dropped":
    "CUPTI or Joulemap dropped kernel records for lack of buffers or memory. The total is unaffected; the energy of " +
    "these kernels goes to idle or to other rows. To do: record --trace light records fewer kernels.",
  "kernels_unreadable":
    "CUPTI could not read a buffer of records to its end. The total is unaffected; the energy of the missing " +
    "kernels goes to idle or to other rows. To do: try another CUPTI: JOULEMAP_CUPTI=/path/to/libcupti.so.12.",
  "kernels_incomplete":
    "Some kernels had not ended when CUPTI returned their records, and are missing. The total is unaffected; their " +
    "energy goes to idle or to other rows.",
  "kernels_foreign_clock":
    "Records with times of another clock were skipped, because another profiler changed the clock of CUPTI. The " +
    "total is unaffected; these kernels are missing from the split. To do: run without the other profiler.",
  "kernels_foreign_buffer":
    "CUPTI returned buffers of another profiler, which Joulemap ignores. Records in them are missing from the " +
    "split; the total is unaffected. To do: run without the other profiler.",
  "records_unknown":
    "CUPTI returned records of a kind that Joulemap does not support; they were skipped. The total is unaffected. " +
    "To do: update Joulemap.",
  "slowed_kernels":
    "The clocks of the GPU were throttled at times. Kernels then take longer at less power; the attribution divides " +
    "their power above idle by a power of the slowdown.",
  "power_limited":
    "The GPU was at its power limit and lowered its clocks: the same work takes longer at less power. The total is " +
    "measured. To do: compare only runs with the same limit (nvidia-smi -q -d POWER).",
  "clocks_slowed":
    "Temperature or hardware protection lowered the clocks of the GPU. Energy and time differ from those of a cool " +
    "GPU. To do: check its cooling and measure again.",
  "kernels_unplaced":
    "The launch of these kernels was not observed. They have energy, but belong to no layer.",
  "kernels_placed_by_repetition":
    "The launch of these kernels was not observed. They were assigned to the layers of the last observed step, in " +
    "its order. Shares of time stay right if steps repeat.",
  "kernels_without_places":
    "CUPTI does not report kernel launches, for example because another profiler is subscribed. Kernels from then " +
    "on have energy, but their layers are unknown or assumed to repeat. To do: run without nsys, ncu, cuda-gdb or " +
    "torch.profiler.",
  "graphs_without_places":
    "Nodes of CUDA graphs are not identified: CUPTI is too old, or memory ran out. Their kernels belong to the " +
    "scope that launched the graph, not to single layers. To do: use CUDA 11.1 or newer.",
  "places_refused":
    "The program uses more than one million names of regions and modules. Further ones are counted with the " +
    "enclosing scope; the total is unaffected. To do: remove numbers from the names of regions.",
  "counts_unknown":
    "Names of these operations identify the layer but not its calls. Energy and time of the rows are unaffected; " +
    "only their call counts are missing. To do: report --by op counts operations.",
  "shapes_unknown":
    "Input shapes of some operations are unknown. Energy is unaffected; operations of one name and different shapes " +
    "share a row. To do: for an import, profile PyTorch with record_shapes=True.",
  "shapes_left_out":
    "Operations had more than 4096 different inputs, and further ones have no shapes. Energy is unaffected; such " +
    "operations share a row.",
  "layers_from_profiler":
    "Layers of compiled graphs come from the profiler of the framework in sampled steps. The total is measured; the " +
    "split among layers is extrapolated from those steps.",
  "layers_not_told":
    "TensorFlow graphs on a GPU have no energy by layer. The total and the energy of kernels are unaffected. To do: " +
    "use report --by kernel or --by phase.",
  "no_capture":
    "The capture library is not next to the joulemap program, so layers and kernels are not recorded. The total is " +
    "unaffected. To do: install the complete package: the wheel, or the folder that make dist creates.",
  "no_python_capture":
    "The Python package is not next to the joulemap program, so layers are not recorded. The total and kernels are " +
    "unaffected. To do: install the complete package.",
  "injection_taken":
    "CUDA_INJECTION64_PATH or NVTX_INJECTION64_PATH is already set, and only one library fits. Kernels (CUDA) or " +
    "NVTX ranges are not recorded; the total is unaffected. To do: unset the variable that the message names.",
  "capture_failed":
    "The capture failed in the program and was switched off; the program went on. Layers, and possibly kernels, are " +
    "missing from that moment on. The total is unaffected. To do: please report the message.",
  "no_kernels":
    "Kernels are not recorded: CUPTI was not found, does not fit the driver, or is not permitted. GPU energy is " +
    "measured, but no layer or kernel receives it. To do: follow the remedy, or set " +
    "JOULEMAP_CUPTI=/path/to/libcupti.so.12.",
  "cupti_newer":
    "CUPTI is newer than this version of Joulemap supports. Its records are read as those of CUDA 13.0; fields may " +
    "be wrong if the layout changed. To do: update Joulemap.",
  "cupti_clock":
    "CUPTI uses a clock of its own. Kernel times are converted with paired clock readings, to a few microseconds; " +
    "energies are hardly affected. To do: use CUDA 11.6 or newer.",
  "cupti_kind":
    "CUPTI refused to switch a kind of record on or off. Kernels, copies or fills of some steps are missing from " +
    "the split; the total is unaffected.",
  "cupti_lost":
    "CUPTI could not be opened again after another profiler used it or after it was closed. Later kernels are " +
    "missing from the split; the total is unaffected. To do: run without the other profiler.",
  "cupti_flush":
    "CUPTI did not deliver its records. Kernels are missing from the split; the total is unaffected.",
  "cupti_hangs":
    "CUPTI did not return at the end of the program, so its last records are missing. The total is unaffected.",
  "cupti_rest":
    "CUPTI could not be closed during untraced steps, and Joulemap does not try again. Kernel launches stay " +
    "slightly slower; the numbers are unaffected otherwise.",
  "profiler_in_process":
    "Another profiler ran in the process. It slows the program, and a profiler of the GPU also takes kernel records " +
    "(kernels_lost). To do: record without it.",
  "profiler_taken":
    "The profiler of JAX or TensorFlow did not start, usually because another one runs. Layers of the compiled " +
    "function have no energy; the total is unaffected. To do: stop other profilers of the program.",
  "no_trace":
    "The profiler of the framework wrote no trace for a sampled step, which therefore has no layers. The total is " +
    "unaffected.",
  "trace_not_read":
    "The trace that the profiler of the framework wrote cannot be read. Layers of those steps are unknown; the " +
    "total is unaffected.",
  "not_probed":
    "Modules could not be replayed after the run, so kernels are separated by regression only. The total is " +
    "unaffected. Probing needs PyTorch modules and a program that ends normally. To do: see docs/attribution.md.",
  "probe_skipped":
    "Some modules could not be replayed, for the reason in the message. The power of their kernels comes from the " +
    "run only; the total is unaffected.",
  "not_dithered":
    "No pauses were inserted, or inserting stopped. Kernels that always run one after the other are harder to " +
    "separate; the total is unaffected. To do: dither runs of one process that use PyTorch modules for more than a " +
    "few seconds.",
  "old_compiler":
    "torch.compile of PyTorch 2.0 hides optimizers, so steps after its first use are not recorded. The total is " +
    "unaffected. To do: use PyTorch 2.1 or newer, or call jm.step() in the loop.",
  "loss_not_read":
    "The tensor on which backward() was called has no readable value. The curve of the loss is missing; energies " +
    "are unaffected. To do: log it with jm.log(loss=...).",
  "domains_differ":
    "Not all recordings of diff, or rows of an experiment, have the same domains. Only common domains are compared; " +
    "the others are left out of the total. To do: run joulemap doctor where a domain is missing, and measure again.",
  "units_differ":
    "The sides have different numbers of steps or epochs and are compared as whole runs. Start-up has a different " +
    "weight in each. To do: record the same number in both.",
  "scatter_unknown":
    "A side has too few steps to estimate their variation. The noise of the comparison comes from the sensors only " +
    "and may be too small. To do: compare longer runs.",
  "no_steady_state":
    "A recording has fewer than 12 steps, so whole runs are compared, including start-up. This hides small changes. " +
    "To do: mark steps, or record more of them.",
  "not_settled":
    "Energy per step still changes in the second half of a recording, so its mean depends on the length of the run. " +
    "To do: record for longer.",
  "waits_for_host":
    "More than 30 % of the energy is idle GPU energy: the GPU waits for the host, whose speed varies from run to " +
    "run. With fewer than three recordings of each side, differences may be chance. To do: joulemap diff B1 B2 B3 " +
    "--baseline A1 A2 A3.",
  "gate_below_noise":
    "The limit of --fail-over is smaller than the change that this comparison can detect. It may pass or fail by " +
    "chance. To do: record several runs of each side, or raise the limit.",
  "file_cut":
    "A compressed trace or log ends early. The part before its end was read; later events or samples are missing. " +
    "To do: copy the file again.",
  "file_damaged":
    "A compressed trace or log is damaged. What could be decompressed was read; the rest is missing. To do: copy " +
    "the file again.",
  "trace_cut":
    "The end of a profile of ONNX Runtime or TensorFlow is missing. Later events are missing from the split. To do: " +
    "for ONNX Runtime, call session.end_profiling() before the program ends.",
  "trace_full":
    "ONNX Runtime stops after one million events. Later runs are missing from the split. To do: profile fewer runs.",
  "damaged_trace":
    "A trace of nsys, of the profiler of TensorFlow or JAX, or of ONNX Runtime is damaged or truncated. Events of " +
    "the damaged part are missing from the split. To do: export or profile again, and stop the profiler before the " +
    "program ends.",
  "events_dropped":
    "Events without a name or time, or with impossible values, were skipped. Their time is missing from the split. " +
    "To do: export the trace again if there are many.",
  "events_out_of_time":
    "Events with impossible times, or more than 30 days from the rest, were skipped. Their time is missing from the " +
    "split.",
  "events_cut":
    "Events of one thread overlap without being nested. They were cut where the other one begins or ends, so their " +
    "times change slightly.",
  "no_events":
    "The trace contains no events. The total comes from the power log, and there is nothing to split it by. To do: " +
    "check that the profiler ran and finished writing.",
  "ranges_open":
    "NVTX ranges of nsys have no end. They last until the end of the trace, so their time may be too long.",
  "framework_profiler":
    "The profiler of the framework stored this error or warning in its trace. Joulemap only passes it on. To do: " +
    "see the message.",
  "profiles_left_out":
    "The folder contains profiles of several hosts, and only the first was read. The others are missing. To do: " +
    "pass the files instead of the folder.",
  "line_left_out":
    "A line of a GPU in the trace is neither a stream nor derived from streams, and was skipped. Kernels that only " +
    "it contains are missing.",
  "graph_kernels_by_name":
    "Kernels of CUDA graphs do not match the compiled program and are identified by name only. Layers that share a " +
    "kernel cannot be distinguished. To do: profile with XLA_FLAGS=--xla_gpu_enable_command_buffer=.",
  "no_modules":
    "The trace contains no layers. Everything outside backward, optimizer and data loading counts as forward. To " +
    "do: profile with with_stack=True.",
  "modules_without_path":
    "Modules of the trace are not in the file of --modules. They are named by class and number; energy is " +
    "unaffected. To do: write the file with jm.save_module_names for this model.",
  "backward_without_forward":
    "The trace contains backward operations without their forward operation. Their layer is unknown; their energy " +
    "counts as backward. To do: start the profiler before the forward pass.",
  "kernels_without_place":
    "The trace does not contain the launch of these kernels. They have energy, but no layer or phase. To do: start " +
    "the profiler before the step, and include CPU activities.",
  "nested_too_deep":
    "Regions nested deeper than 64, or modules nested deeper than 256, are counted with the enclosing ones. The " +
    "total is unaffected.",
  "too_many_places":
    "The trace contains more than one million scopes. Further ones are counted with the enclosing ones; the total " +
    "is unaffected.",
  "clock_not_known":
    "The trace has no start time. Joulemap assumes that it starts with the power log; the split is wrong if it does " +
    "not. To do: set --start UNIX_NS, or --offset-ms relative to the power log.",
  "cpu_time_from_trace":
    "A trace contains no CPU time. CPU energy is split by the time of threads in each scope, waiting included.",
  "map_not_used":
    "An entry of --map names a GPU that no trace contains. It has no effect. To do: count inputs and GPUs from 0.",
  "no_power":
    "A power log contains fewer than two values of power or energy. Its energy is unknown. To do: log timestamp and " +
    "power.draw.",
  "power_gap":
    "The power log has gaps. The energy of each gap is computed from the power around it.",
  "power_rows_dropped":
    "Rows of the power log were skipped, for the reason in the message. The power around them is used.",
  "power_out_of_order":
    "Times of the power log decrease. Rows were sorted by time, which is wrong if the clock was set meanwhile.",
  "power_told_once":
    "A domain has only one reading. Its energy is unknown. To do: log for longer than one period.",
  "power_told_twice":
    "Two power logs contain the same channel. The first is used, so no energy is counted twice.",
  "power_does_not_overlap":
    "A power log does not overlap the trace in time. Its domain is left out, and its energy is unknown. To do: " +
    "shift the trace with --offset-ms, or set the time zone with --utc-offset.",
  "power_is_mean":
    "The log contains power.draw only, which is a mean over one second on most GPUs. Shorter changes are smoothed, " +
    "so short steps are less certain. To do: also log power.draw.instant.",
  "local_time":
    "Times of the log have no time zone; that of this machine is assumed. A wrong zone shifts all samples. To do: " +
    "set --utc-offset +HH:MM.",
  "columns_guessed":
    "The log has no header. The columns of power and GPU are guessed, as the message shows. To do: log with " +
    "--format=csv, without noheader.",
  "gpus_numbered":
    "The log has no index of the GPU. GPUs are numbered in the order of their first row, which may differ from the " +
    "trace. To do: log with --query-gpu=timestamp,index,....",
  "gpus_not_told_apart":
    "Rows of the log seem to come from several GPUs but do not name them. All are assigned to gpu0, whose energy is " +
    "then wrong. To do: log with --query-gpu=timestamp,index,....",
  "import.events-dropped":
    "Invalid events of a PyTorch trace were skipped. Their time is missing from the split. To do: export the trace " +
    "again if there are many.",
  "import.events-repaired":
    "Events of a PyTorch trace contain unescaped quotes and were repaired. The numbers are unaffected. To do: a " +
    "newer PyTorch escapes them.",
  "import.odd-devices":
    "Events of a PyTorch trace have impossible GPU numbers. Their energy is unknown. To do: assign the GPU with " +
    "--map.",
  "import.truncated":
    "A PyTorch trace ends early. The part before its end was read; later events are missing. To do: stop the " +
    "profiler before the program ends, and copy the file again.",
  "import.damaged-file":
    "A compressed PyTorch trace is damaged. What could be decompressed was read; the rest is missing. To do: copy " +
    "the file again.",
  "import.damaged-header":
    "The metadata of a PyTorch trace are partly damaged. Host, rank or start time may be missing; events are " +
    "unaffected.",
  "import.unknown-category":
    "Events of a PyTorch trace have a category that Joulemap does not know, and were skipped. Their time is missing " +
    "from the split.",
  "import.no-base-time":
    "A PyTorch trace has no valid base time, so it starts with the power log. The split is wrong if it does not. To " +
    "do: set --start UNIX_NS.",
  "import.not-a-trace":
    "A text is not a PyTorch trace, and an empty trace was used. import ends with an error instead; only tests and " +
    "fuzzers emit this code.",
};
