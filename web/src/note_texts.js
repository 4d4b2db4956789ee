// SPDX-License-Identifier: Apache-2.0
// Generated from docs/reference/diagnostics.md by tools/make_note_help.py: edit that page and run the command.
export const NOTE_TEXTS = {
  "cut_off":
    "The recorder stopped before the command ended, for example because the disk was full. Energy and time cover " +
    "only the recorded time. To do: free disk space and record again.",
  "recording_not_ended":
    "A process was killed, or its disk was full, before it closed its part. Later layers and kernels are missing. " +
    "To do: let the program exit normally, and record again.",
  "recording_cut":
    "The end of the file is damaged: writing was cut off. Later data are missing. To do: copy the file again, or " +
    "record again.",
  "recording_damaged":
    "Damaged bytes inside the file are skipped. If later samples exist, counters still give the energy of that " +
    "time; its split is missing. To do: copy the file again.",
  "recording_source_lost":
    "The description of a process is missing, and so are its layers, kernels or samples. To do: copy the file " +
    "again.",
  "recording_part_open":
    "A process was still writing its part when the recorder ended. report reads the part beside the recording. To " +
    "do: report again after the process has ended.",
  "recording_part_skipped":
    "The folder of parts contains a link, FIFO or folder with the name of a part, which is skipped. To do: move it " +
    "away.",
  "recording_part_unreadable":
    "The part of a process is unreadable or not a recording. Its data are missing. To do: chmod u+r the part, then " +
    "report again.",
  "recording_write_failed":
    "A process could not write samples or events to its part; they are missing. To do: free disk space and record " +
    "again.",
  "write_failed":
    "record could not write the recording. The unwritten data are missing. To do: free disk space and record again.",
  "samples_out_of_order":
    "Samples older than the previous one of their channel are skipped. A few do not change the energy of counters.",
  "samples_of_unknown_channel":
    "This version does not support a channel of the file. Its energy is missing. To do: update Joulemap.",
  "duplicate_samples":
    "Two recorders on one machine recorded the same sensor. One copy is skipped, so no energy counts twice.",
  "chunks_skipped":
    "The file contains chunks of a newer Joulemap. They are missing from the report, or from the copy by share. To " +
    "do: update Joulemap.",
  "unknown_marks":
    "The file contains marks of a newer Joulemap. Steps or phases may be missing; the total is unaffected. To do: " +
    "update Joulemap.",
  "unknown_places":
    "The file contains kinds of scopes or kernels of a newer Joulemap. They have energy but no name. To do: update " +
    "Joulemap.",
  "marks_dropped":
    "The program set marks faster than Joulemap could write them: steps, epochs, regions or windows are missing. " +
    "The total is unaffected. To do: set fewer marks.",
  "flock_missing":
    "The file system has no file locks: Joulemap cannot detect parts that are still being written. To do: record to " +
    "a local disk with -o, then copy the file.",
  "no_recorder":
    "Only parts of processes were passed, without the file of sensor samples. Times are known, energies are not. To " +
    "do: also pass the file that joulemap record wrote on that machine.",
  "no_samples":
    "No sensor was recorded. Times are known, energies are not. To do: run joulemap doctor; for an import, pass " +
    "--power.",
  "nothing_captured":
    "The recording contains nothing at this level, so the table is empty. The total is unaffected. To do: use a " +
    "supported framework, CUDA, jm.region() or jm.step(), or choose another --by.",
  "estimates_not_added":
    "Measured and estimated energies are never added. Estimates of a machine (report) or domain (experiment " +
    "analyze) are left out. To do: run joulemap doctor on that machine.",
  "no_sensor":
    "Neither a sensor nor an estimate is available here. Energies are unknown. To do: run joulemap doctor.",
  "only_estimated":
    "No sensor is readable here. All energies are estimates from CPU time, power limit and memory size. To do: run " +
    "joulemap doctor.",
  "sensor_absent":
    "A sensor of --sensors cannot be used; the message shows why. Its domains are missing. To do: run joulemap " +
    "doctor.",
  "sensor_denied":
    "Permission to read a sensor is missing, or was withdrawn during the run. Its energy is missing from then on. " +
    "To do: run joulemap doctor.",
  "sensor_unreadable":
    "One value of a sensor cannot be read, or stays at 0. A domain without another value is missing. To do: see " +
    "dmesg and joulemap doctor.",
  "sensor_failed":
    "Reads of a sensor failed during the run. The next value of a counter covers them; other gaps are " +
    "readings_missing or energy_missing. To do: see dmesg.",
  "sensor_hangs":
    "A read of a sensor did not return. Joulemap stops reading it, and its later energy is missing. To do: see " +
    "dmesg.",
  "sensor_vanished":
    "A sensor disappeared during the run: its driver was unloaded or the device removed. Its later energy is " +
    "missing. To do: see dmesg.",
  "garbage_reading":
    "The file of a sensor contained text that is not a number. Such readings are dropped; the next value of a " +
    "counter covers them. To do: check that file and its driver.",
  "torn_reading":
    "A value was read while the driver wrote it. Such readings are dropped; the next one replaces them.",
  "counter_reset":
    "A counter decreased without a wrap, for example after a driver reload or suspend. The energy of that moment is " +
    "missing. To do: measure again without reload or suspend.",
  "counter_frozen":
    "A counter stopped changing or never changed: it is frozen, or the run is shorter than its update period. The " +
    "energy of that time is missing or unknown. To do: measure for longer, or on the host of the virtual machine.",
  "counter_still":
    "doctor saw no change of a counter within 50 ms. The counter is slow or frozen. To do: run joulemap stat sleep " +
    "10: it reports counter_frozen if the counter never changes.",
  "wrap_missed":
    "A counter was not read for so long that it may have wrapped. The energy of that time is missing. To do: leave " +
    "Joulemap CPU time.",
  "unknown_range":
    "The range of a RAPL counter (max_energy_range_uj) is unreadable. A wrap then looks like a counter_reset, and " +
    "its energy is missing. To do: make that file readable.",
  "energy_missing":
    "Readings do not cover part of the time. Its energy is missing, which the interval accounts for. If too little " +
    "is covered, the energy is unknown.",
  "readings_missing":
    "A power sensor was not read for a while. Joulemap interpolates, and the interval is wider. To do: leave " +
    "Joulemap CPU time; see dmesg if the sensor failed.",
  "readings_paused":
    "A counter was not read for a while. The total is exact; the split of that time is less certain. To do: leave " +
    "Joulemap CPU time.",
  "window_too_short":
    "The command or window is shorter than the update period of a counter, so its energy is unknown; or it lasts " +
    "only a few ticks of CPU time, from which the energy is estimated. To do: repeat the work: joulemap stat -r 20 " +
    "-- sh -c 'for i in $(seq 1000); do CMD; done'.",
  "sensors_disagree":
    "Two sensors of one domain differ by more than 5 % and their uncertainties. The first one counts. To do: choose " +
    "one with --sensors.",
  "no_energy_counter":
    "The GPU has no energy counter. Joulemap integrates power samples and misses changes between them.",
  "gpu_denied":
    "A GPU cannot be opened: permission denied. Its energy is missing. To do: check ls -l /dev/nvidia*; in a " +
    "container, pass --gpus all.",
  "gpu_lost":
    "The driver lists a GPU that is lost, not found or needs a reset. Its energy is missing. To do: see sudo dmesg " +
    "| grep -i xid, then reset the GPU or reboot.",
  "gpu_failed":
    "The NVIDIA driver, its library or a GPU does not answer. Energies of the affected GPUs are missing. To do: " +
    "check nvidia-smi -q -d POWER.",
  "gpu_without_energy":
    "A GPU, such as a virtual one, reports neither energy nor power. Its energy is missing. To do: measure on the " +
    "host, or pass the whole GPU through.",
  "gpu_not_measured":
    "Kernels ran on a GPU whose energy was not recorded. Its rows have times only. To do: run joulemap doctor; for " +
    "an import, pass its power log or --map.",
  "gpu_shared":
    "Other processes use the GPU, and its total includes their energy. record separates it as the row background; " +
    "stat cannot. To do: wait until the GPU is free, or use joulemap record.",
  "gpu_shared_untold":
    "Other processes use the GPU, but their utilization is unreadable. Their energy is in the total, and in idle, " +
    "unattributed or the command's rows. To do: give the program the GPU exclusively; in a container, use docker " +
    "run --pid=host.",
  "gpu_owner_unknown":
    "NVML lists processes of another PID namespace, perhaps of the command. Their energy is not separated. To do: " +
    "use docker run --pid=host, or give the program the GPU exclusively.",
  "mig_mode":
    "The GPU is split into MIG instances. Its energy includes all of them. To do: keep the other instances idle.",
  "mig_whole_gpu":
    "CUDA_VISIBLE_DEVICES names a MIG instance. Only the whole GPU can be measured, with the other instances. To " +
    "do: keep the other instances idle.",
  "cuda_device_order":
    "CUDA_VISIBLE_DEVICES uses indexes, and the GPUs are of different models. CUDA orders them by speed, Joulemap " +
    "by PCI address: it may measure another GPU. To do: export CUDA_DEVICE_ORDER=PCI_BUS_ID.",
  "cuda_visible_devices_invalid":
    "An entry of CUDA_VISIBLE_DEVICES is no GPU of this machine. Like CUDA, Joulemap ignores it and all later " +
    "entries. To do: correct the list; nvidia-smi -L shows the GPUs.",
  "cuda_visible_devices_repeated":
    "CUDA_VISIBLE_DEVICES names a GPU twice. Joulemap measures it once. To do: name each GPU once; CUDA programs " +
    "may otherwise see none.",
  "nvml_library_refused":
    "Joulemap ignores JOULEMAP_NVML, because this program has more privileges than its user. It uses the library of " +
    "the driver. To do: unset JOULEMAP_NVML, or use a copy of Joulemap without capabilities.",
  "kernels_by_time":
    "Power samples cannot separate kernels that always run together, so their energy is split by time. Sums over a " +
    "phase or block are reliable, single layers less. The total is measured. To do: record --probe, a longer run, " +
    "or --period 100 for more counter intervals.",
  "kernels_by_library":
    "Powers of some kernel classes come from earlier recordings on this GPU model. The split relies on them; the " +
    "total is measured. To do: report --library none uses this recording only.",
  "kernels_sampled":
    "Kernels were recorded in some steps; the split of the others is extrapolated, assuming that steps repeat. The " +
    "total is measured. To do: record --trace full records all steps, at a higher cost.",
  "kernels_grouped":
    "Only the 20,000 kernels with the most time have a row; the others share one.",
  "kernels_lost":
    "Another profiler took the kernel records for some time. The energy of that time is unattributed; the total is " +
    "unaffected. To do: run without the other profiler.",
  "kernels_dropped":
    "CUPTI or Joulemap dropped kernel records for lack of buffers or memory. Their energy goes to idle or other " +
    "rows. To do: record --trace light records fewer kernels.",
  "kernels_unreadable":
    "CUPTI could not read a buffer of records to its end. The energy of the missing kernels goes to idle or other " +
    "rows. To do: try another CUPTI: JOULEMAP_CUPTI=/path/to/libcupti.so.12.",
  "kernels_incomplete":
    "Kernels that had not ended when CUPTI returned their records are missing. Their energy goes to idle or other " +
    "rows.",
  "kernels_foreign_clock":
    "Another profiler changed the clock of CUPTI. Records with its times are missing from the split. To do: run " +
    "without the other profiler.",
  "kernels_foreign_buffer":
    "CUPTI returned buffers of another profiler. Their records are missing from the split. To do: run without the " +
    "other profiler.",
  "records_unknown":
    "CUPTI returned records of an unsupported kind, which Joulemap skips. To do: update Joulemap.",
  "slowed_kernels":
    "The GPU was throttled at times. Attribution assumes less power above idle for slowed kernels: divided by " +
    "slowdown^exponent.",
  "power_limited":
    "The GPU was at its power limit and lowered its clocks: the same work takes longer at less power. To do: " +
    "compare only runs with the same limit (nvidia-smi -q -d POWER).",
  "clocks_slowed":
    "Temperature or hardware protection lowered the clocks of the GPU. Energy and time differ from those of a cool " +
    "GPU. To do: check its cooling and measure again.",
  "advice_needs_gpu":
    "joulemap advise judges the energy of GPUs, or else of phases and layers on the CPU. This recording has " +
    "neither. To do: joulemap report --by function lists the costliest functions of a Python program.",
  "kernels_unplaced":
    "The launch of these kernels was not observed. They have energy, but no layer.",
  "kernels_placed_by_repetition":
    "The launch of these kernels was not observed. They belong to the layers of the last observed step, which is " +
    "correct if steps repeat.",
  "kernels_without_places":
    "CUPTI reports no launches, for example because another profiler is subscribed. Later kernels have energy, but " +
    "no layer or an assumed one. To do: run without nsys, ncu, cuda-gdb or torch.profiler.",
  "graphs_without_places":
    "The nodes of CUDA graphs are unknown: CUPTI is too old, or memory ran out. Their kernels belong to the scope " +
    "that launched the graph. To do: use CUDA 11.1 or newer.",
  "places_refused":
    "The program uses more than one million names of regions and modules. Further ones count with the enclosing " +
    "scope. To do: remove numbers from the names of regions.",
  "counts_unknown":
    "Only samples or totals of these operations were recorded. Only call counts are missing. To do: report --by op " +
    "counts operations.",
  "shapes_unknown":
    "Input shapes of some operations are unknown. Operations with one name and different shapes share a row. To do: " +
    "for an import, profile PyTorch with record_shapes=True; of TensorFlow, import a RunMetadata.",
  "shapes_left_out":
    "Operations had more than 4096 different inputs. Further ones share a row without shapes.",
  "layers_from_profiler":
    "Layers of compiled graphs come from the framework's profiler in sampled steps. The split among them is " +
    "extrapolated; the total is measured.",
  "layers_not_told":
    "TensorFlow graphs on a GPU have no energy by layer. The total and the energy of kernels are unaffected. To do: " +
    "use report --by kernel or --by phase; or profile some steps with tf.profiler and " +
    "[import](trace-formats.md#tensorflow) the trace.",
  "function_without_layers":
    "No call of a compiled TensorFlow function was profiled: its only call also compiled it, or profiling had " +
    "reached its limit of time. The energy of the function is known, but not that of its layers.",
  "tensorflow_not_captured":
    "This version of TensorFlow lacks the functions that Joulemap hooks. The energy of the run is unaffected; it " +
    "has no layers and steps. To do: use TensorFlow 2.13 or later.",
  "eager_backward":
    "TensorFlow ran the backward pass eagerly. Its energy has the phase backward, but no layers. To do: decorate " +
    "the training step with @tf.function.",
  "no_capture":
    "The capture library is not next to the joulemap program, so layers and kernels are not recorded. The total is " +
    "unaffected. To do: install the wheel, or the folder that make dist creates.",
  "no_python_capture":
    "The Python package is not next to the joulemap program, so layers are not recorded. The total and kernels are " +
    "unaffected. To do: install the wheel, or the folder that make dist creates.",
  "injection_taken":
    "CUDA_INJECTION64_PATH or NVTX_INJECTION64_PATH is already set. Kernels (CUDA) or NVTX ranges are not recorded; " +
    "the total is unaffected. To do: unset it.",
  "capture_failed":
    "The capture failed and switched itself off; the program went on. Later layers, and possibly kernels, are " +
    "missing; the total is unaffected. To do: please report the message.",
  "engine_not_captured":
    "The serving engine has another version than the ones Joulemap knows, or its hook failed. The engine ran on; " +
    "its later steps are not recorded. To do: use a version of the table in the how-to, or report steps with " +
    "jm.engine_step.",
  "no_kernels":
    "CUPTI was not found, does not fit the driver, or is not permitted. GPU energy is measured, but no layer or " +
    "kernel receives it. To do: follow the remedy, or set JOULEMAP_CUPTI=/path/to/libcupti.so.12.",
  "cupti_newer":
    "CUPTI is newer than Joulemap, which reads records of CUDA 13.0. If their layout changed, fields are wrong. To " +
    "do: update Joulemap.",
  "cupti_clock":
    "CUPTI uses its own clock. Kernel times are converted, to a few microseconds; this hardly affects energies. To " +
    "do: use CUDA 11.6 or newer.",
  "cupti_kind":
    "CUPTI refused to switch a kind of record on or off. Kernels, copies or fills of some steps are missing from " +
    "the split.",
  "cupti_lost":
    "CUPTI could not be opened again, for example after another profiler used it. Later kernels are missing from " +
    "the split. To do: run without the other profiler.",
  "cupti_flush":
    "CUPTI did not deliver its records. Kernels are missing from the split.",
  "cupti_hangs":
    "CUPTI did not return at the end of the program. Its last records are missing from the split.",
  "cupti_rest":
    "CUPTI could not be closed during untraced steps. Kernel launches stay slightly slower.",
  "profiler_in_process":
    "Another profiler ran in the process. It slows the program; a GPU profiler also takes kernel records " +
    "(kernels_lost). To do: record without it.",
  "profiler_taken":
    "The profiler of JAX or TensorFlow did not start, usually because another one runs. Layers of the compiled " +
    "function have no energy; the total is unaffected. To do: stop other profilers.",
  "no_trace":
    "The framework's profiler wrote no trace of a sampled step, which therefore has no layers.",
  "trace_not_read":
    "A trace of the framework's profiler is unreadable. Layers of those steps are unknown.",
  "not_probed":
    "Modules could not be replayed after the run, so only the regression separates kernels. To do: probe PyTorch " +
    "programs that exit normally; one that is killed or calls os._exit cannot be probed.",
  "probe_skipped":
    "Some modules could not be replayed; the message shows why. The power of their kernels comes from the run only.",
  "not_dithered":
    "Dithering did not start, or stopped. Kernels that always run in the same order are harder to separate. To do: " +
    "dither longer runs of one process with PyTorch modules.",
  "old_compiler":
    "torch.compile of PyTorch 2.0 hides optimizers, so steps after its first use are not recorded. To do: use " +
    "PyTorch 2.1 or newer, or call jm.step() in the loop.",
  "loss_not_read":
    "The tensor on which backward() was called has no readable value. The loss curve is missing. To do: log it with " +
    "jm.log(loss=...).",
  "steps_of_one_process":
    "Several processes that are not ranks of one run report steps. Rows of steps and epochs are those of the " +
    "process with the most; totals per step count the steps of all. To do: use --by layer or --by rank, which " +
    "contain all processes.",
  "engine_steps_dropped":
    "The engine reported steps faster than they could be written, or steps of more than 65536 requests. The missing " +
    "steps count as idle time. To do: record on a faster disk.",
  "engine_steps_reversed":
    "Steps ended before they began. They have no duration and no energy. To do: pass times of CLOCK_MONOTONIC, or " +
    "none.",
  "engine_steps_out_of_order":
    "Steps began before a step that the engine reported earlier. Their times are used as given; time between steps " +
    "may count as idle. To do: report the steps of an engine in order.",
  "engine_events_unknown":
    "The engine reported that requests finished or were aborted that were in no step, or had ended before. Nothing " +
    "is lost.",
  "engine_requests_unfinished":
    "A million requests were open at once, because the engine does not report their end. Those that continue count " +
    "as new requests. To do: pass finished=True in the last step of each request.",
  "request_ids_repeated":
    "Requests have the id of an earlier request of the same engine that had ended. They are separate rows: the " +
    "second row of a is a (2). To do: use unique ids.",
  "requests_unfinished":
    "Requests neither finished nor were aborted: the recording ended, the engine died, or it does not report their " +
    "end. Their energy is counted; distributions leave them out. Requests that end after the part that --time " +
    "selects are not unfinished. To do: pass finished=True in the last step of each request.",
  "requests_not_listed":
    "The run, or the part that --time selects, has more requests than the report lists. The others are part of all " +
    "sums, but have no row and no label. To do: report a part of the run with --time.",
  "serving_too_short":
    "Too few readings of the sensor to fit the energy of a step. The energy of requests follows the duration of " +
    "their steps. To do: serve for a few seconds or longer.",
  "serving_on_several_machines":
    "Several machines ran serving engines. Rows and sums cover all of them; joules per token and distributions " +
    "cover the machine with the most steps. To do: report the recording of each machine on its own.",
  "domains_differ":
    "Recordings of diff, or rows of an experiment, have different domains. Only common domains count. To do: run " +
    "joulemap doctor where a domain is missing.",
  "units_differ":
    "Whole runs are compared, whose numbers of steps or epochs differ by more than 5 %. Start-up has a different " +
    "weight in each. To do: record the same number in both.",
  "command_failed":
    "The command of a compared recording was killed or failed. The comparison covers what it did until then. To do: " +
    "record a run that ends well.",
  "scatter_unknown":
    "A side has too few steps to estimate their variation. The noise comes from the sensors only and may be too " +
    "small. To do: compare longer runs.",
  "estimates_compared":
    "All compared energies are estimates for one machine, without other processes. The scale of its power model is " +
    "uncertain, but cancels in relative changes. Intervals contain the rest: 10 %, an assumption. To do: read " +
    "changes in percent, not in joules.",
  "unequal_load":
    "The compared energies are estimates, and other processes used the machine much more during some of the " +
    "recordings. The same work then takes more CPU time, so its estimate is larger. Intervals contain an error of " +
    "50 % for it, an assumption. To do: stop other programs, or record A and B alternately, several times each.",
  "no_steady_state":
    "A recording has fewer than 12 steps, so whole runs are compared, including start-up. This hides small changes. " +
    "To do: mark steps with jm.step(), or record more of them.",
  "not_settled":
    "Energy per step still changes in the second half of a recording, so its mean depends on the length of the run. " +
    "To do: record for longer.",
  "waits_for_host":
    "More than 30 % of the energy is idle GPU energy, and the speed of the host varies. With fewer than three " +
    "recordings per side, differences may be chance. To do: joulemap diff B1 B2 B3 --baseline A1 A2 A3.",
  "gate_below_noise":
    "The limit of --fail-over is smaller than the change that this comparison can detect. It may pass or fail by " +
    "chance. To do: record several runs per side, or raise the limit.",
  "file_cut":
    "A compressed trace or log ends early. Later events or samples are missing. To do: copy the file again.",
  "file_damaged":
    "A compressed trace or log is damaged. What cannot be decompressed is missing. To do: copy the file again.",
  "trace_cut":
    "The end of an ONNX Runtime or TensorFlow profile is missing, and so are its events. To do: for ONNX Runtime, " +
    "call session.end_profiling() before the program ends.",
  "trace_full":
    "ONNX Runtime stops after one million events. Later runs are missing from the split. To do: profile fewer runs.",
  "damaged_trace":
    "A trace of nsys, TensorFlow, JAX or ONNX Runtime is damaged or truncated. Events of that part are missing from " +
    "the split. To do: profile again, and stop the profiler before the program ends.",
  "events_dropped":
    "Events without name or time, or with impossible values, are skipped. Their time is missing from the split. To " +
    "do: export the trace again if there are many.",
  "events_out_of_time":
    "Events with impossible times, or more than 30 days from the rest, are skipped. Their time is missing from the " +
    "split.",
  "events_cut":
    "Events of a thread overlap without nesting. They are cut where the other one begins or ends, so their times " +
    "change slightly.",
  "no_events":
    "The trace contains no events, so the total of the power log cannot be split. To do: check that the profiler " +
    "finished writing.",
  "profile_without_times":
    "A profile of cProfile has sums over the whole run. Power is split evenly over its own times; cumulative times " +
    "are not in a recording. To do: import it with --pattern for cumulative times.",
  "ranges_open":
    "NVTX ranges of nsys have no end. They last until the end of the trace, which may be too long.",
  "framework_profiler":
    "The framework's profiler stored the error or warning of the message in its trace.",
  "profiles_left_out":
    "The folder contains profiles of several hosts; only the first is read. To do: pass the files instead of the " +
    "folder.",
  "line_left_out":
    "A line of a GPU in the trace is neither a stream nor derived from streams, and is skipped. Kernels that only " +
    "it contains are missing.",
  "graph_kernels_by_name":
    "Kernels of CUDA graphs do not match the compiled program and are identified by name only. Layers that share a " +
    "kernel cannot be distinguished. To do: profile with XLA_FLAGS=--xla_gpu_enable_command_buffer=.",
  "no_modules":
    "The trace contains no layers. Everything outside backward, optimizer and data loading counts as forward. To " +
    "do: profile with with_stack=True.",
  "modules_without_path":
    "Modules of the trace are not in the file of --modules. They are named by class and number. To do: write the " +
    "file with jm.save_module_names for this model.",
  "backward_without_forward":
    "The trace contains backward operations without their forward operation. Their layer is unknown; their energy " +
    "counts as backward. To do: start the profiler before the forward pass.",
  "kernels_without_place":
    "The trace does not contain the launch of these kernels. They have energy, but no layer or phase. To do: start " +
    "the profiler before the step, and include CPU activities.",
  "nested_too_deep":
    "Regions nested deeper than 64, or modules deeper than 256, count with the enclosing ones.",
  "too_many_places":
    "The trace contains more than one million scopes. Further ones count with the enclosing ones.",
  "clock_not_known":
    "The trace has no start time. Joulemap assumes that it starts with the power log; otherwise the split is wrong. " +
    "To do: set --start UNIX_NS, or --offset-ms relative to the power log.",
  "cpu_time_from_trace":
    "A trace contains no CPU time. CPU energy is split by the time of threads in each scope, waiting included.",
  "map_not_used":
    "An entry of --map names a GPU that no trace contains. It has no effect. To do: count inputs and GPUs from 0.",
  "no_power":
    "A power log contains fewer than two values of power or energy. Its energy is unknown. To do: log timestamp and " +
    "power.draw.",
  "power_gap":
    "The power log has gaps. Their energy is computed from the power around them.",
  "power_rows_dropped":
    "Rows of the power log are skipped; the message shows why. The power around them is used.",
  "power_out_of_order":
    "Times of the power log decrease. Rows are sorted by time, which is wrong if the clock was set meanwhile.",
  "power_told_once":
    "A domain has only one reading. Its energy is unknown. To do: log for longer than one period.",
  "power_told_twice":
    "Two power logs contain the same channel. The first one counts, so no energy counts twice.",
  "power_before_1990":
    "All times of a power log are before 1990, probably because time_unix_ns is in seconds or milliseconds. " +
    "Energies are then wrong. To do: write time_unix_ns in nanoseconds.",
  "power_covers_part":
    "A power log covers only a part of the trace or of another log. The recording contains only that part. To do: " +
    "log the power during the whole run, or remove a domain that covers too little.",
  "power_does_not_overlap":
    "A power log does not overlap the trace in time. Its domain is left out. To do: shift the trace with " +
    "--offset-ms, or set the time zone with --utc-offset.",
  "power_is_mean":
    "The log contains only power.draw, a mean over one second on most GPUs. Short steps are less certain. To do: " +
    "also log power.draw.instant.",
  "local_time":
    "Times of the log have no time zone; Joulemap assumes that of this machine. A wrong zone shifts all samples. To " +
    "do: set --utc-offset +HH:MM.",
  "columns_guessed":
    "The log has no header. Joulemap guesses the columns of power and GPU, as the message shows. To do: log with " +
    "--format=csv, without noheader.",
  "gpus_numbered":
    "The log has no index of the GPU. GPUs are numbered in the order of their first row, which may differ from the " +
    "trace. To do: log with --query-gpu=timestamp,index,....",
  "gpus_not_told_apart":
    "Rows of the log seem to come from several unnamed GPUs. All count as gpu0, whose energy is then wrong. To do: " +
    "log with --query-gpu=timestamp,index,....",
  "import.events-dropped":
    "Invalid events of a PyTorch trace are skipped. Their time is missing from the split. To do: export the trace " +
    "again if there are many.",
  "import.events-repaired":
    "Events of a PyTorch trace with unescaped quotes were repaired, without loss. To do: use a newer PyTorch, which " +
    "escapes them.",
  "import.odd-devices":
    "Events of a PyTorch trace have impossible GPU numbers. Their energy is unknown. To do: assign the GPU with " +
    "--map.",
  "import.truncated":
    "A PyTorch trace ends early. Later events are missing. To do: stop the profiler before the program ends.",
  "import.damaged-file":
    "A compressed PyTorch trace is damaged. What cannot be decompressed is missing. To do: copy the file again.",
  "import.damaged-header":
    "The metadata of a PyTorch trace are damaged. Host, rank or start time may be missing; events are unaffected.",
  "import.unknown-category":
    "Events of a PyTorch trace have an unknown category and are skipped. Their time is missing from the split.",
  "import.no-base-time":
    "A PyTorch trace has no valid base time. Joulemap assumes that it starts with the power log; otherwise the " +
    "split is wrong. To do: set --start UNIX_NS.",
  "import.not-a-trace":
    "The text is no PyTorch trace. Only tests emit this code; import ends with an error.",
};
