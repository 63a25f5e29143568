// SPDX-License-Identifier: GPL-2.0
/* Load, unload and load again; profiles; registers; refused configurations. */
#include "../../selftests/tap.h"
#include "fake.h"

static void load_and_unload(const char *name, bool is_pf)
{
	const struct mlx5sim_config config = {
		.lid = 3, .strict = true, .is_pf = is_pf,
	};
	struct dev *d = dev_new(&config);

	for (u32 round = 0; round < 3; round++) {
		int failed = dev_boot(d);

		ok(!failed && !d->violation, "%s: load %u (%x, %s)", name,
		   round, failed, d->text);
		ok(d->msix[0], "%s: events of commands interrupt", name);
		failed = dev_shutdown(d);
		ok(!failed && !d->violation, "%s: unload %u (%x, %s)", name,
		   round, failed, d->text);
	}
	ok(mlx5sim_stats(d->sim)->commands > 60, "%s: commands are counted",
	   name);
	dev_free(d);
	machine_reset();
}

static void registers(void)
{
	const struct mlx5sim_config config = { .lid = 1, .strict = true };
	struct dev *d = dev_new(&config);
	u64 first, second;

	ok(mlx5sim_bar_read(d->sim, 4, 4) >> 16 == 5, "command interface is 5");
	ok(mlx5sim_bar_read(d->sim, 0, 8) == 0x0010001000050000ull,
	   "two registers at once");
	ok(mlx5sim_bar_read(d->sim, 0x14, 4) == 0x56, "32 slots of 64 bytes");
	ok(mlx5sim_bar_read(d->sim, 0x17, 1) == 0x56, "a byte of a register");
	ok(mlx5sim_bar_read(d->sim, 0x16, 2) == 0x56, "half of a register");
	ok(mlx5sim_bar_read(d->sim, 0x1fc, 4) == 0, "initialized");
	first = mlx5sim_bar_read(d->sim, 0x1010, 4);
	second = mlx5sim_bar_read(d->sim, 0x1010, 4);
	ok(first != second, "health counter moves");
	first = mlx5sim_bar_read(d->sim, 0x1000, 8);
	machine_run(1000000);
	ok(mlx5sim_bar_read(d->sim, 0x1000, 8) - first == 156250,
	   "clock of 156.25 MHz");
	mlx5sim_bar_write(d->sim, 0x10, 0x123456789000ull, 8);
	ok(mlx5sim_bar_read(d->sim, 0x14, 4) == 0x56789056,
	   "queue address keeps the sizes");
	dev_free(d);
}

static void refused(const char *name, struct mlx5sim_config config)
{
	ok(!dev_new(&config), "refused: %s", name);
}

static void configurations(void)
{
	struct mlx5sim_config config = { .lid = 7 };
	struct dev *d = dev_new(&config);

	refused("LID taken", config);
	refused("LID 0", (struct mlx5sim_config){ .lid = 0 });
	refused("LID of multicast", (struct mlx5sim_config){ .lid = 0xc000 });
	refused("unknown capability",
		(struct mlx5sim_config){ .lid = 8, .caps = "nonsense=1" });
	refused("capability too big",
		(struct mlx5sim_config){ .lid = 8, .caps = "pg=2" });
	refused("capability without value",
		(struct mlx5sim_config){ .lid = 8, .caps = "pg" });
	refused("fault without number",
		(struct mlx5sim_config){ .lid = 8, .faults = "0x200:1" });
	refused("fault number 0",
		(struct mlx5sim_config){ .lid = 8, .faults = "0x200:0:3" });
	refused("unknown fault",
		(struct mlx5sim_config){ .lid = 8, .faults = "explode:1" });
	dev_free(d);
	config = (struct mlx5sim_config){
		.lid = 7, .caps = "pg=0,atomic=0",
		.faults = "0x200:3:8,cqe-delay:0x25:1:1000,resume-error:2",
	};
	d = dev_new(&config);
	ok(d, "lists of several are understood");
	dev_free(d);
}

static void reset(void)
{
	const struct mlx5sim_config config = { .lid = 1, .strict = true };
	struct dev *d = dev_running(&config);

	mlx5sim_bar_write(d->sim, 500 * PAGE + 0x800, 0, 8);
	ok(d->violation == CHK_DOORBELL && mlx5sim_violation(d->sim) ==
	   CHK_DOORBELL, "a doorbell of nothing breaks a rule");
	mlx5sim_reset(d->sim);
	d->violation = 0;
	ok(!mlx5sim_violation(d->sim) && !mlx5sim_stats(d->sim)->commands,
	   "reset forgets");
	d->pages = 0;
	ok(!dev_boot(d) && !d->violation, "load after reset");
	dev_free(d);
	machine_reset();
}

int main(void)
{
	load_and_unload("VF", false);
	load_and_unload("PF", true);
	registers();
	configurations();
	reset();
	return tap_done();
}
